module wirewitness.lab/go_mgo

go 1.26.0

require github.com/globalsign/mgo v0.0.0-20181015135952-eeefdecb41b8

require gopkg.in/check.v1 v1.0.0-20201130134442-10cb98267c6c // indirect
