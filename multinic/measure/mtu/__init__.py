"""Path MTU: what each hop says, what really passes, the first mismatch and its cure; and a calculator for tunnels."""
