//! Tests of archives: conversion, cursors, checks, cuts, damage, parts.

mod archive;
mod checks;
mod cut;
mod hostile;
mod parts;
#[path = "../../../trace-tools/tests/all/shared.rs"]
mod shared;
