"""Sizing and cost: from Gbit/s, packets and availability to machines, zones, an autoscaler's target and a price."""
