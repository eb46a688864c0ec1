"""The scenarios with Eclipse Mosquitto."""
