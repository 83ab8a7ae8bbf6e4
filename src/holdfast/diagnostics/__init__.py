"""Why something does not happen, found out from what the contract tells: for doors, clients and commands alike.

It reads and thinks; it changes nothing, and knows neither a store nor a door.
"""
