"""What makes files of this repository out of others. Not part of the package."""
