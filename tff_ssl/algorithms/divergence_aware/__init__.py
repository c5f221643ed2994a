"""FedEMA, FedU and their framework: clients mix their networks with the global ones."""
