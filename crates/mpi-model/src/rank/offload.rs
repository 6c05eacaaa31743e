//! Computations of regions of the program on accelerators, and the copies of their data.

use pdes_core::{Bytes, StateVisitor};
use trace_mmap::LocationId;

use super::pending::Pending;
use super::{Outcome, RankProcess};
use crate::breakdown::region_name;
use crate::completion::Completion;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::{Accelerator, Machine, Work};
use crate::observer::Analysis;
use crate::statistics::ActionKind;

/// Accelerator of the region in which the program is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offload<Route> {
    /// Index of the call site or region; `None` before the first one.
    site: Option<u32>,
    accelerator: Option<Accelerator<Route>>,
    /// Factor of the duration of computations on the accelerator.
    compute_factor: f64,
}

impl<Route: Copy + Send> Offload<Route> {
    /// Returns the accelerator before the first region; `None` where the machine has none at all.
    pub(super) fn new<M, A>(context: &RankContext<'_, M, A>) -> Option<Box<Self>>
    where
        M: Machine<Route = Route>,
        A: Analysis,
    {
        context.replay.machine.has_accelerators().then(|| Box::new(Self::at(None, context)))
    }

    /// Returns the accelerator at a call site or in a region.
    fn at<M, A>(site: Option<u32>, context: &RankContext<'_, M, A>) -> Self
    where
        M: Machine<Route = Route>,
        A: Analysis,
    {
        let region = region_at(site, context);
        let accelerator = context.replay.machine.accelerator(context.me, region);
        let compute_factor = accelerator.as_ref().map_or(1.0, |accelerator| {
            let Accelerator { speed, memory_bandwidth, .. } = *accelerator;
            context.replay.parameters.compute_factor(region, speed, memory_bandwidth)
        });
        Self { site, accelerator, compute_factor }
    }

    /// Visits the region, from which the rest follows.
    pub(super) fn visit<M, A>(&mut self, context: &RankContext<'_, M, A>, visitor: &mut StateVisitor<'_>)
    where
        M: Machine<Route = Route>,
        A: Analysis,
    {
        visitor.plain(&mut self.site);
        if visitor.is_loading() {
            *self = Self::at(self.site, context);
        }
    }
}

/// Returns the name of the region at a call site; before any, the empty name.
fn region_at<'t, M: Machine, A: Analysis>(site: Option<u32>, context: &RankContext<'t, M, A>) -> &'t str {
    site.map_or("", |site| region_name(context.trace.location(LocationId::new(site))))
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Lets the accelerator of the region compute; `None` if there is none.
    #[cold]
    pub(super) fn offload(
        &mut self,
        flops: f64,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Option<Outcome<M::Error>> {
        let Offload { accelerator, compute_factor, .. } = *self.offload.as_deref()?;
        let accelerator = accelerator?;
        let flops = flops * compute_factor;
        let work = Work::Compute { flops, accelerator: Some(accelerator.host) };
        if self.context.submit_work(work, None, outbox) {
            return Some(Ok(self.await_work(ActionKind::Compute)));
        }
        let begin = self.context.thread.clock;
        let duration = self.context.replay.machine.accelerator_time(&accelerator, flops, begin);
        let advanced = self.context.advance(duration, "a computation", || format!("{flops} flop"));
        Some(advanced.map(|()| self.end(ActionKind::Compute)))
    }

    /// Goes to a call site or region: data are copied from the accelerator of the region that ends, and to that of the one that begins.
    #[cold]
    pub(super) fn change_region(
        &mut self,
        site: LocationId,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let site = site.index() as u32;
        let Offload { site: before, accelerator, .. } =
            *self.offload.as_deref().expect("there are accelerators");
        if region_at(before, &self.context) == region_at(Some(site), &self.context) {
            return Ok(self.end(ActionKind::Marker));
        }
        let copy = accelerator.and_then(|accelerator| accelerator.copy_out);
        if self.copy(copy, outbox)? {
            return Ok(self.keep_pending(Pending::Copy { site, leaves: true, done: false }));
        }
        let kind = if copy.is_some() { ActionKind::Copy } else { ActionKind::Marker };
        self.begin_region(site, kind, outbox)
    }

    /// Goes on after a copy from or to an accelerator.
    pub(super) fn resume_copy(
        &mut self,
        site: u32,
        leaves: bool,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        if leaves {
            return self.begin_region(site, ActionKind::Copy, outbox);
        }
        Ok(self.end(ActionKind::Copy))
    }

    /// Begins a region: data are copied to its accelerator. `kind` is that of what was before.
    fn begin_region(
        &mut self,
        site: u32,
        kind: ActionKind,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        self.enter_region(LocationId::new(site));
        let offload = Offload::at(Some(site), &self.context);
        self.offload = Some(Box::new(offload));
        let copy = offload.accelerator.and_then(|accelerator| accelerator.copy_in);
        if self.copy(copy, outbox)? {
            return Ok(self.keep_pending(Pending::Copy { site, leaves: false, done: false }));
        }
        Ok(self.end(if copy.is_some() { ActionKind::Copy } else { kind }))
    }

    /// Copies data; returns whether the copy has to be waited for.
    fn copy(
        &mut self,
        copy: Option<(M::Route, Bytes)>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some((route, bytes)) = copy else { return Ok(false) };
        let context = &mut self.context;
        let completion = Completion::of_work(context.replay.lp(context.me), None);
        let start = context.thread.clock;
        match context.transfer((route, bytes), start, context.repeats(), completion) {
            Ok(request) => {
                outbox.submit(start, 0, request);
                Ok(true)
            }
            Err(duration) => {
                context.advance(duration, "a copy", || bytes.to_string())?;
                Ok(false)
            }
        }
    }
}
