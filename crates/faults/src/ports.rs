//! Ports for schedulers that listen on this machine.

use std::net::TcpListener;

use crate::{Chance, Error};

/// Ports that the system gives to nobody who does not ask for them: a client that looks for a
/// scheduler that is gone must not end up connected to itself.
const PORTS: (u64, u64) = (20_000, 32_000);
/// Ports that are tried at most.
const TRIES_MAX: u32 = 1_000;

/// Draws `n` different ports that are free now.
pub fn free_ports(n: usize, chance: &mut Chance) -> Result<Vec<u16>, Error> {
    let mut free: Vec<u16> = Vec::new();
    for _ in 0..TRIES_MAX {
        if free.len() == n {
            return Ok(free);
        }
        let port = u16::try_from(chance.between(PORTS.0, PORTS.1)).unwrap_or(0);
        if !free.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            free.push(port);
        }
    }
    let none = std::io::Error::other("every port that was tried is taken");
    Err(Error::system("find ports")(none))
}
