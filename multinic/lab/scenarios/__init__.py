"""What happens to live connections when something happens to the fleet: scenarios, their report and plot."""
