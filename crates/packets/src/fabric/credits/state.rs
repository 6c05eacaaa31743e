//! The state of input buffers.

use std::collections::VecDeque;

use pdes_core::StateVisitor;

use super::super::nodes::{IDLE, Node, Port};
use super::buffers::{Buffers, Output, Published, Queue, Request, Waiting};
use super::sleeper::Sleeper;
use crate::packet::{visit_busy_until, visit_picos};

impl Buffers {
    /// Finds the wakes of all nodes anew.
    pub(in super::super) fn set_wakes(&mut self, nodes: &[Node], injections: usize) {
        self.wakes.iter_mut().for_each(VecDeque::clear);
        let Self { channels, queues, first_memory, outputs, injection_wakes, nodes: of_ports, wakes, .. } =
            self;
        for (node, wakes) in nodes.iter().zip(wakes.iter_mut()) {
            for queue in node.first_input * *channels..(node.first_input + node.inputs) * *channels {
                wakes.push_back((queues[queue as usize].wake, Sleeper::Queue(queue).pack()));
            }
        }
        for port in 0..outputs.len() {
            let wakes = &mut wakes[of_ports[port] as usize];
            wakes.push_back((outputs[port].wake, Sleeper::Output(port as u32).pack()));
            let memory = *first_memory + port as u32;
            if let Some(queue) = queues.get(memory as usize) {
                wakes.push_back((queue.wake, Sleeper::Queue(memory).pack()));
            }
            if port < injections {
                wakes.push_back((injection_wakes[port], Sleeper::Injection(port as u32).pack()));
            }
        }
        for wakes in wakes {
            wakes.retain(|(at, _)| *at != IDLE);
            wakes.make_contiguous().sort_unstable();
        }
    }

    /// Visits the state. Nothing happens before the horizon.
    pub(in super::super) fn visit(&mut self, ports: &[Port], horizon: u64, visitor: &mut StateVisitor<'_>) {
        let Self {
            channels: _,
            capacity: _,
            arbitration: _,
            queues,
            first_memory: _,
            outputs,
            rooms,
            injection_wakes,
            nodes: _,
            wakes: _,
            touched: _,
            granting: _,
            published,
        } = self;
        if let Some(Published { period, instants, backlogs }) = published {
            visitor.compare(&(visitor.now().as_picos() % *period));
            if !visitor.saves_whole(instants) {
                instants.iter_mut().for_each(|instant| visit_picos(instant, visitor));
            }
            visitor.plain(backlogs);
        }
        if visitor.saves_whole(queues) {
            visitor.saved(outputs);
            visitor.saved(rooms);
            return visitor.saved(injection_wakes);
        }
        for Queue { packets, busy_until, wake } in queues {
            visitor.compare(&packets.len());
            for Waiting { packet, output, channel } in packets {
                packet.visit_waiting(visitor);
                visit_busy_until(&mut packet.at, horizon, visitor);
                visitor.compare(output);
                visitor.compare(channel);
            }
            visit_busy_until(busy_until, horizon, visitor);
            visit_wake(wake, visitor);
        }
        for (Output { requests, waiting, turn, wake }, port) in outputs.iter_mut().zip(ports) {
            // The list has no order.
            requests.sort_unstable_by_key(|request| request.source);
            let is_idle = requests.is_empty() && port.free_at < horizon;
            visitor.compare(&if is_idle { 0 } else { *turn });
            visitor.compare(&requests.len());
            for Request { age, source, bytes, channel } in requests {
                visitor.compare(&(*source, *bytes, *channel, *age > 0));
                if *age > 0 {
                    visit_picos(age, visitor);
                }
            }
            visitor.compare(waiting);
            visit_wake(wake, visitor);
        }
        let now = visitor.now().as_picos();
        for room in rooms {
            // Whether credits that are back have been taken in makes no difference: a node that has done so is not behind them. They stay as
            // they are, for nodes that are.
            let taken = if visitor.is_observing() {
                room.credits.partition_point(|(back, _)| *back <= now)
            } else {
                0
            };
            let returned: u64 = room.credits.range(..taken).map(|&(_, bytes)| u64::from(bytes)).sum();
            visitor.compare(&(room.bytes + returned, room.credits.len() - taken));
            for (back, bytes) in room.credits.range_mut(taken..) {
                visit_picos(back, visitor);
                visitor.compare(bytes);
            }
        }
        injection_wakes.iter_mut().for_each(|wake| visit_wake(wake, visitor));
    }
}

/// Visits an instant that may be [`IDLE`].
fn visit_wake(wake: &mut u64, visitor: &mut StateVisitor<'_>) {
    visitor.compare(&(*wake == IDLE));
    if *wake != IDLE {
        visit_picos(wake, visitor);
    }
}
