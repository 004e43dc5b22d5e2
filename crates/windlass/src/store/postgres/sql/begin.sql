-- begin: a transaction whose limits and plans are its own, so that it runs behind a pooler. Plans are kept and walk indexes:
-- a plan made while a table was empty must not scan it when it is full.
BEGIN;
SET LOCAL statement_timeout = 30000;
SET LOCAL lock_timeout = 10000;
SET LOCAL idle_in_transaction_session_timeout = 60000;
SET LOCAL plan_cache_mode = force_generic_plan;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL jit = off
