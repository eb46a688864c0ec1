module wirewitness.lab/ferretdb

go 1.26.0

// The server itself is built from this module's source, see mongo_servers.py.
require github.com/FerretDB/FerretDB v1.24.2
