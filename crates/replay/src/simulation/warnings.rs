//! Warnings about a simulation, which a user should know before trusting its result.

use mpi_model::{Parameters, region_name};
use netmodel::{NetworkParameters, Preset, name_matches};
use pdes_core::Rank;
use trace_mmap::{Trace, UnmodelledCalls, check_collectives};

use super::Simulation;
use crate::acquisition_warnings;
use crate::execution::{Feature, Obstacle};
use crate::launches::Start;
use crate::models::Model;
use crate::programs::Program;

impl Simulation {
    /// Returns warnings that a user should know before trusting the result, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.platform.warnings().to_vec();
        warnings.extend(self.trace_warnings.get_or_init(|| self.warnings_of_traces()).iter().cloned());
        warnings.extend(self.memory_warning());
        if let Some((bandwidth, latency)) = self.first_route() {
            warnings.extend(self.spec.preset.mismatches(bandwidth, latency));
        }
        warnings.extend(self.spec.replaced_factors.iter().cloned());
        warnings.extend(self.factors_warning());
        warnings.extend(self.unused_warnings());
        warnings.extend(self.in_network_warning());
        warnings.extend(self.offload_warnings());
        warnings.extend(self.surplus_threads_warning());
        warnings.extend(self.overcommitted_warning());
        if let ([_, ..], Some(first)) = (self.programs.others(), &self.spec.name) {
            warnings.push(format!(
                "the analyses of ranks are those of the job {first:?} alone: put the job that you want to look into first"
            ));
        }
        let execution = self.execution(1);
        warnings.extend(execution.obstacles.iter().map(|(feature, why)| self.describe(*feature, why)));
        warnings
    }

    /// Returns the warning about parameters of the network that a model has no use for.
    fn factors_warning(&self) -> Option<String> {
        let of = |network: &NetworkParameters| {
            let NetworkParameters { latency_factor, bandwidth_factor, tcp_gamma, cross_traffic, .. } =
                network;
            (latency_factor.clone(), bandwidth_factor.clone(), *tcp_gamma, *cross_traffic)
        };
        let differs = of(&self.spec.network) != of(&NetworkParameters::preset(Preset::Raw));
        let model = self.spec.model;
        (differs && !self.network().capabilities.factors).then(|| {
            format!(
                "the model {model:?} takes links as they are written: factors of latency and rate, TCP window and cross traffic of \
                 [network] have no effect (network.preset = \"links\" has none)"
            )
        })
    }

    /// Returns warnings about keys of the model's section that have no effect, one for each setting that they are for.
    fn unused_warnings(&self) -> Vec<String> {
        let (model, given) = (self.spec.model, &self.spec.model_parameters);
        let Some(section) = &model.section else { return Vec::new() };
        let unused = (section.unused)(given).into_iter().filter(|(key, _)| given.contains_key(*key));
        let mut settings: Vec<(&str, Vec<String>)> = Vec::new();
        for (key, setting) in unused {
            let key = format!("{}.{key}", model.key);
            match settings.last_mut() {
                Some((last, keys)) if *last == setting => keys.push(key),
                _ => settings.push((setting, vec![key])),
            }
        }
        let warning = |(setting, keys): (&str, Vec<String>)| {
            let verb = if keys.len() == 1 { "has" } else { "have" };
            format!("{} {verb} no effect without {setting}", keys.join(", "))
        };
        settings.into_iter().map(warning).collect()
    }

    /// Returns the warning that operations of switches and messages do not wait for each other, where links have loads, or what switches do
    /// not tell.
    fn in_network_warning(&self) -> Option<String> {
        let operation =
            self.programs.iter().find_map(|program| program.spec.mpi.collectives.needs_switch_tree())?;
        let capabilities = self.network().capabilities;
        if capabilities.switch_operations {
            return self.spec.critical_path.then(|| {
                format!(
                    "mpi.{} = \"in_network\": critical paths stay on a rank while switches wait for others, whom they do not name",
                    operation.name()
                )
            });
        }
        capabilities.links.then(|| {
            format!(
                "mpi.{} = \"in_network\" takes the time of switches that carry nothing else: it neither waits for messages nor \
                 delays them",
                operation.name()
            )
        })
    }

    /// Returns warnings about the traces of all programs; those about another program than that of the run name its trace.
    fn warnings_of_traces(&self) -> Vec<String> {
        let of_others = self.programs.others().iter().flat_map(|program| {
            let warnings = self.warnings_of_trace(&program.trace).into_iter();
            warnings.map(|warning| format!("{}: {warning}", program.spec.trace))
        });
        self.warnings_of_trace(self.trace()).into_iter().chain(of_others).collect()
    }

    fn warnings_of_trace(&self, trace: &Trace) -> Vec<String> {
        let mut warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
        warnings.extend(trace.unreceived().map(|unreceived| unreceived.to_string()));
        warnings.extend(unfinished_warning(trace));
        warnings.extend(unmodelled_warning(trace));
        warnings.extend(collectives_warning(trace));
        if self.platform.storage().is_empty() && trace.has_file_calls() {
            warnings.push("calls on files take no time: the platform has no storage".to_owned());
        }
        warnings.extend(acquisition_warnings::warnings(&trace.provenance()));
        warnings
    }

    /// Returns the warning that the replay goes on without a feature.
    fn describe(&self, feature: Feature, why: &Obstacle) -> String {
        match feature {
            Feature::Threads => {
                let (model, threads) = (self.spec.model, self.spec.threads);
                let advice = match model.with_epochs {
                    // No other setting helps files, and none with contention locks.
                    _ if self.uses_storage() || *why == Obstacle::LockOrder => String::new(),
                    Some(_) => format!("; for {threads} threads take epoch_s = \"auto\""),
                    None => {
                        format!("; for {threads} threads take network.model = {:?}", Model::uncontended())
                    }
                };
                format!("the exact model {model:?} runs on one thread: {why}{advice}")
            }
            Feature::FastForward => format!("nothing is fast-forwarded: {why}"),
            _ => why.to_string(),
        }
    }

    /// Returns the bandwidth \[B/s\] of the narrowest link between rank 0 and the first rank on another host, and the latency \[s\].
    fn first_route(&self) -> Option<(f64, f64)> {
        let mut hosts = self.placement().hosts().iter().copied();
        let first = hosts.next()?;
        let mut route = Vec::new();
        // A missing route ends the run where a message needs it.
        self.platform.route(first, hosts.find(|host| *host != first)?, &mut route).ok()?;
        let links = || route.iter().map(|&link| self.platform.link(link));
        let bandwidth = links().map(|link| link.bandwidth).reduce(f64::min)?;
        Some((bandwidth, links().map(|link| link.latency).sum()))
    }

    /// Returns a warning if traffic with the memory is given, and has no effect for ranks on hosts without a memory bandwidth.
    fn memory_warning(&self) -> Option<String> {
        let Parameters { bytes_per_flop, region_bytes_per_flop, .. } = &self.spec.mpi;
        let key = match *bytes_per_flop > 0.0 {
            true => "bytes_per_flop",
            false if region_bytes_per_flop.values().any(|traffic| *traffic > 0.0) => "region_bytes_per_flop",
            false => return None,
        };
        let hosts = self.placement().hosts().iter().map(|&host| self.platform.host(host));
        let mut without = hosts.filter(|host| host.memory_bandwidth.is_none());
        let first = without.next()?;
        let ranks = count(without.count() as u64 + 1, "rank");
        Some(format!(
            "compute.{key} has no effect on {ranks}, the first on the host {}, which has no memory_bandwidth: give it one in the platform",
            first.name
        ))
    }

    /// Returns whether a rank that is loaded has a region or call site of such a name.
    pub fn has_region(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let mut ranks = self
            .programs
            .iter()
            .flat_map(|program| program.trace.loaded_ranks().map(move |rank| program.trace.rank(rank)));
        ranks.any(|rank| rank.locations().any(|location| is_it(region_name(location))))
    }

    /// Returns warnings of accelerators for regions that no rank enters.
    fn offload_warnings(&self) -> Vec<String> {
        let regions = self.spec.offloads.iter().map(|offload| &offload.region);
        // The regions of a program that runs are not known before.
        let grow = self.programs.iter().any(|program| program.trace.grows());
        let is_known = |region: &str| {
            grow || name_matches(region, "") || self.has_region(|name| name_matches(region, name))
        };
        let unknown = regions.filter(|region| !is_known(region));
        unknown.map(|region| format!("compute.offload: no rank enters a region {region:?}")).collect()
    }

    /// Returns a warning about threads for which there are no cores, if there are any.
    fn surplus_threads_warning(&self) -> Option<String> {
        let (threads, cores) = (self.surplus_threads?, self.spec.threads);
        Some(format!(
            "{} for {}: {cores} of them work, because threads without a core delay all others (affinity and control groups count); \
             parallel.oversubscribe = true lets all work",
            count(threads as u64, "thread"),
            count(cores as u64, "core")
        ))
    }

    /// Returns a warning about the first host with more ranks than cores, if there is one before a scheduler chooses hosts.
    fn overcommitted_warning(&self) -> Option<String> {
        let mut placed =
            self.programs.iter().filter(|program| !matches!(program.spec.start, Start::Submitted(_)));
        let overcommitted = |program: &Program| program.placement.overcommitted(&self.platform);
        let (host, ranks) = placed.find_map(overcommitted)?;
        let (host, hosts) = (self.platform.host(host), self.platform.hosts().len());
        let cores = count(host.cores.into(), "core");
        let effect = match self.network().capabilities.cores {
            true => "computations at the same time share cores".to_owned(),
            false => format!("the model {:?} gives each rank a core of its own", self.spec.model.key),
        };
        let cause = match &self.spec.hosts {
            Some(_) => String::new(),
            None if self.programs.others().is_empty() => format!(
                ": {} for {}, platform.placement = {:?}; take a larger platform, or choose hosts with platform.hosts",
                count(self.programs.lps().into(), "rank"),
                count(hosts as u64, "host"),
                self.spec.placement.name()
            ),
            None => String::new(),
        };
        Some(format!("{} has {ranks} ranks for {cores}, {effect}{cause}", host.name))
    }
}

/// Returns a warning that names the calls which take no time in a replay, although they did in the program.
fn unmodelled_warning(trace: &Trace) -> Option<String> {
    // A damaged archive ends the run on the process that holds the ranks concerned; no warning is needed.
    let calls = UnmodelledCalls::of(trace).ok().filter(|calls| !calls.is_empty())?;
    let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
    Some(format!("calls that no replay models take no time: {}", calls.join(", ")))
}

/// Returns a warning about the first collective operation in which ranks differ.
fn collectives_warning(trace: &Trace) -> Option<String> {
    // As above.
    let finding = check_collectives(trace).ok()??;
    Some(format!("{finding}: the program is wrong, and the result may be"))
}

/// Returns a warning with the number of requests that the program never completes, if there are any.
fn unfinished_warning(trace: &Trace) -> Option<String> {
    let ranks = (0..trace.ranks()).map(Rank::new);
    // Invalid tables end the run on the process that holds the ranks concerned.
    let pending = ranks.filter_map(|rank| Some((rank, trace.outline(rank).ok()?.1)));
    let pending: Vec<(Rank, u64)> = pending.filter(|&(_, requests)| requests > 0).collect();
    let requests: u64 = pending.iter().map(|(_, requests)| requests).sum();
    let (first, _) = pending.first()?;
    let are = if requests == 1 { "is" } else { "are" };
    Some(format!(
        "{} of {}, the first of rank {first}, {are} not completed by the program; the replay waits for them at the end of the trace",
        count(requests, "request"),
        count(pending.len() as u64, "rank")
    ))
}

/// Returns a number with its noun, such as `1 rank` or `2 ranks`.
fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
