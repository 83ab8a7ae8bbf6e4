"""The public JSON of the HTTP interface: bodies of requests, answers, and the way from and to the contract."""
