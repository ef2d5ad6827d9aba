"""Chapter 12: the ledger of what the sources claim."""
