"""The lab's packets: a network namespace for each VPC network, steering and firewall by nftables, and the prober."""
