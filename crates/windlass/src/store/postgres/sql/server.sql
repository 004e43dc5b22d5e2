-- server: what bears on durability.
SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
       current_setting('full_page_writes'), current_setting('synchronous_standby_names'), pg_is_in_recovery(),
       (SELECT count(*) FROM pg_stat_replication),
       (SELECT count(*) FROM {schema}.leases l WHERE l.expires_at < {now} - $2::bigint)
