//! Ports for schedulers on this machine.

use std::net::TcpListener;

use crate::{Chance, Error};

/// Ports outside of the system's ephemeral range. A client of a stopped scheduler could otherwise
/// connect to itself.
const PORTS: (u64, u64) = (20_000, 32_000);
/// The limit of tries.
const TRIES_MAX: u32 = 1_000;

/// Draws `n` different free ports.
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
