"""The doors for programs elsewhere: REST and gRPC, thin over the contract."""
