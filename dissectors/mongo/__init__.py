"""MongoDB's wire protocol: OP_MSG, OP_COMPRESSED and the legacy opcodes, BSON, commands and their replies."""
