"""What one client minimises: networks, a loss, and state that stays on the client.

An objective knows nothing of federation.
"""
