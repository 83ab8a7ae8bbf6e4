"""The gRPC messages of proto/holdfast.proto, and how they are made from the contract's records and back."""
