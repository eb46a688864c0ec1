module wirewitness/lab/tls

go 1.20
