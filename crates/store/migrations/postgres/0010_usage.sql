-- What a tenant used is summed up with each claim under its budget: its own minutes are read, not
-- those of all tenants.
CREATE INDEX usage_tenant ON usage (tenant, minute);
