//! Slots: how much of a node's room for outgoing calls one tenant and one destination may hold. Pure.
//! The limits hold even while others are idle: a call may take an hour, so room that was lent could not be returned in
//! time.

/// A part of the slots, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// Everything.
    pub const ALL: Self = Self(100);

    /// `percent` of the whole; none beyond 1 to 100.
    #[must_use]
    pub const fn new(percent: u32) -> Option<Self> {
        if percent >= 1 && percent <= 100 { Some(Self(percent)) } else { None }
    }

    /// This part of `count`, rounded down, but at least one.
    #[must_use]
    pub const fn of(self, count: u32) -> u32 {
        let part = count as u64 * self.0 as u64 / 100;
        if part == 0 { 1 } else { part as u32 }
    }
}

/// How a node's slots may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotShares {
    /// The most that one tenant holds. Default: half.
    pub tenant: Percent,
    /// The most that one destination holds, over all tenants. Default: half of a tenant's part.
    pub destination: Percent,
}

impl Default for SlotShares {
    fn default() -> Self {
        Self { tenant: Percent(50), destination: Percent(25) }
    }
}

impl SlotShares {
    /// The limits of a node with this many slots.
    #[must_use]
    pub const fn of(self, slots: u32) -> SlotLimits {
        SlotLimits { tenant: self.tenant.of(slots), destination: self.destination.of(slots) }
    }
}

/// How many calls may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimits {
    /// Of one tenant.
    pub tenant: u32,
    /// To one destination, of all tenants.
    pub destination: u32,
}

/// How many calls are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Of the call's tenant.
    pub tenant: u32,
    /// To the call's destination.
    pub destination: u32,
}

/// Whether a call may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotVerdict {
    /// It may.
    Start,
    /// Its tenant holds its whole part.
    TenantFull,
    /// Its destination holds its whole part.
    DestinationFull,
}

impl SlotLimits {
    /// The limits of a tenant with this quota of calls. A quota narrows the tenant's part; it never widens it.
    #[must_use]
    pub const fn within(self, quota: Option<u32>) -> Self {
        match quota {
            Some(most) if most < self.tenant => Self { tenant: most, ..self },
            Some(_) | None => self,
        }
    }

    /// Whether one more call may start, with these under way.
    #[must_use]
    pub const fn judge(self, in_use: InUse) -> SlotVerdict {
        if in_use.tenant >= self.tenant {
            SlotVerdict::TenantFull
        } else if in_use.destination >= self.destination {
            SlotVerdict::DestinationFull
        } else {
            SlotVerdict::Start
        }
    }
}
