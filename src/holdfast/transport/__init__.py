"""What travels between processes, and how it is made from the contract and back. Pure."""
