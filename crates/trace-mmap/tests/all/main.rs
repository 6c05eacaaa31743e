//! Tests of archives: conversion, cursors, cuts, damage, parts.

mod archive;
mod cut;
mod hostile;
mod parts;
#[path = "../../../trace-tools/tests/all/shared.rs"]
mod shared;
