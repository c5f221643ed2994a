"""FedSup, FedRGD, FedMatch and their baselines: labels are at the server alone."""
