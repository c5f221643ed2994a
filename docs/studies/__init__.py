"""How far clients drift in runs of FedAvg: the figures of docs/dec_ssl.md."""
