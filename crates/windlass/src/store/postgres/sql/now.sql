-- now: what the server's clock says.
SELECT {now}
