"""Federated self-supervised learning on TensorFlow Federated.

Nothing is imported here: a program imports the modules it uses by their path, as in
`from tff_ssl.algorithms import dcco`, and waits for TFF only when it needs TFF.
"""

__version__ = '0.1.0'
