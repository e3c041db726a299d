"""What an operator does to a fleet, through Google's client library: the same code for Google Cloud and for the lab."""
