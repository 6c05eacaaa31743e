//! The macro that makes both forms of a call, and all that follows from its fields, of one row.

/// Returns a name of the table, which is in bytes since names are looked up in bytes.
pub(crate) const fn text(name: &'static [u8]) -> &'static str {
    match std::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => panic!("a name is not text"),
    }
}

/// Expands to `$target.$own(fields)` or, for a row without a rule of its own, to the default.
macro_rules! own_or {
    ([$own:ident] $target:ident ($($field:ident,)*) $default:block) => {
        $target.$own($($field),*)
    };
    ([] $target:ident ($($field:ident,)*) $default:block) => {
        $default
    };
}

/// Makes `Call`, `CallOp` and `CallKind` of the [table](super::table), which describes the syntax of a row.
macro_rules! calls {
    (
        $(#[$call_meta:meta])*
        pub enum Call;
        $(#[$op_meta:meta])*
        pub enum CallOp;
        $(
            $(#[$doc:meta])*
            $variant:ident [$($number:literal: $text:literal $(| $also:literal)?),*] $(by $($by:ident)+ | $($op_by:ident)+)? {
                $(names { $($n:ident: $n_type:ty => $op_n:ident: $op_n_type:ty = $n_role:ident),* $(,)? })?
                $(requests { $($r:ident: $r_type:ty => $op_r:ident: $op_r_type:ty = $use:ident),* $(,)? })?
                $(values { $($v:ident: $v_type:ty = $v_role:ident),* $(,)? })?
                $(derived { $($d:ident: $d_type:ty = $d_role:ident),* $(,)? })?
            }
            $(read by $read:ident)? $(resolved by $resolved:ident)?;
        )*
    ) => {
        $(#[$call_meta])*
        pub enum Call {
            /// A call that the replay does not model: takes no time. Before the rows, whose numbers in archives a new last row
            /// leaves as they are.
            Unmodelled(Unmodelled),
            $(
                $(#[$doc])*
                $variant {
                    $($($n: $n_type,)*)?
                    $($($r: $r_type,)*)?
                    $($($v: $v_type,)*)?
                    $($($d: $d_type,)*)?
                },
            )*
        }

        $(#[$op_meta])*
        pub enum CallOp {
            $(
                $(#[$doc])*
                $variant {
                    $($($op_n: $op_n_type,)*)?
                    $($($op_r: $op_r_type,)*)?
                    $($($v: $v_type,)*)?
                },
            )*
            /// `MPI_Wait`.
            Wait { request: RequestName },
            /// A call that the replay does not model.
            Unmodelled(Unmodelled),
        }

        /// The call of a row of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the calls are those of `CallOp`")]
        pub enum CallKind {
            $($variant,)*
            Wait,
            Unmodelled,
        }

        impl CallKind {
            /// All calls.
            pub const ALL: &[Self] = &[$(Self::$variant,)* Self::Wait, Self::Unmodelled];

            /// Finds the call with this name in text, and which of the names of its row this is.
            #[inline]
            pub fn find(name: &[u8]) -> Option<(Self, u8)> {
                match name {
                    $($($text $(| $also)? => Some((Self::$variant, $number)),)*)*
                    b"wait" => Some((Self::Wait, 0)),
                    b"unmodelled" => Some((Self::Unmodelled, 0)),
                    _ => None,
                }
            }

            /// Returns the names of the row.
            pub const fn names(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => const { &[$(text($text)),*] },)*
                    Self::Wait => &["wait"],
                    Self::Unmodelled => &[Unmodelled::ACTION],
                }
            }
        }

        impl Call {
            /// Returns the name of the action in a trace, such as `waitany`; `collective` for blocking and `icollective` for
            /// nonblocking collective operations.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { $($($by,)+)? .. } => CallKind::$variant.names()[0 $($(+ $by.number())+)?],)*
                    Self::Unmodelled(_) => Unmodelled::ACTION,
                }
            }

            /// Passes each field to the method of `visitor` for its role.
            pub(crate) fn visit<'a>(&'a self, visitor: &mut impl Visit<'a, Indexed>) {
                match self {
                    $(
                        Self::$variant { $($($n,)*)? $($($r,)*)? $($($v,)*)? $($($d,)*)? } => {
                            $($(visitor.$n_role($n);)*)?
                            $($(visitor.requests(RequestUse::$use, $r.as_list());)*)?
                            $($(visitor.$v_role(*$v);)*)?
                            $($(visitor.$d_role($d);)*)?
                        }
                    )*
                    Self::Unmodelled(_) => {}
                }
            }

            /// Passes each index to the method of `visitor` for its role, which may change it.
            pub(crate) fn visit_mut(&mut self, visitor: &mut impl VisitMut) {
                match self {
                    $(
                        Self::$variant { $($($n,)*)? $($($r,)*)? $($($d,)*)? .. } => {
                            $($(visitor.$n_role($n);)*)?
                            $($(visitor.requests($r.as_list_mut());)*)?
                            $($(visitor.$d_role($d);)*)?
                        }
                    )*
                    Self::Unmodelled(_) => {}
                }
            }

            /// Returns the call in terms of the program. Requests are named by their slots: when a slot is reused, the name is free
            /// again.
            pub fn to_op(&self, rank: &RankTrace) -> CallOp {
                match self {
                    $(
                        Self::$variant { $($($n,)*)? $($($r,)*)? $($($v,)*)? .. } => CallOp::$variant {
                            $($($op_n: $n.to_named(rank),)*)?
                            $($($op_r: $r.to_named(rank),)*)?
                            $($($v: *$v,)*)?
                        },
                    )*
                    Self::Unmodelled(call) => CallOp::Unmodelled(call.clone()),
                }
            }
        }

        impl CallOp {
            /// Returns the name of the action in a trace, such as `waitany`.
            pub fn name(&self) -> &'static str {
                if let Self::Collective { operation, request, .. } = self {
                    return if request.is_some() { operation.nonblocking_name() } else { operation.name() };
                }
                match self {
                    $(Self::$variant { $($($op_by,)+)? .. } => CallKind::$variant.names()[0 $($(+ $op_by.number())+)?],)*
                    Self::Wait { .. } => CallKind::Wait.names()[0],
                    Self::Unmodelled(_) => Unmodelled::ACTION,
                }
            }

            /// Passes each field to the method of `visitor` for its role.
            pub fn visit<'a>(&'a self, visitor: &mut impl Visit<'a, Named>) {
                match self {
                    $(
                        Self::$variant { $($($op_n,)*)? $($($op_r,)*)? $($($v,)*)? } => {
                            $($(visitor.$n_role($op_n);)*)?
                            $($(visitor.requests(RequestUse::$use, $op_r.as_list());)*)?
                            $($(visitor.$v_role(*$v);)*)?
                        }
                    )*
                    Self::Wait { request } => visitor.requests(RequestUse::Waited, request.as_list()),
                    Self::Unmodelled(_) => {}
                }
            }

            /// Removes requests from the lists of the call, but not those that it makes; returns whether any is left where it
            /// needs one.
            pub fn retain_requests(&mut self, is_kept: impl Fn(RequestName) -> bool) -> bool {
                match self {
                    $(
                        Self::$variant { $($($op_r,)*)? .. } => {
                            true $($(&& $op_r.keep(RequestUse::$use, &is_kept))*)?
                        }
                    )*
                    Self::Wait { request } => is_kept(*request),
                    Self::Unmodelled(_) => true,
                }
            }

            /// Reads the fields of a call.
            ///
            /// # Errors
            /// Returns the first error of the reader.
            ///
            /// # Panics
            /// Panics for collective operations and unmodelled calls, whose fields are not those of a row.
            pub fn read<R: ReadCall>(kind: CallKind, reader: &mut R) -> Result<Self, R::Error> {
                match kind {
                    $(
                        CallKind::$variant => own_or!([$($read)?] reader () {
                            Ok(Self::$variant {
                                $($($op_n: reader.$n_role()?,)*)?
                                $($($v: reader.$v_role()?,)*)?
                                $($($op_r: RequestField::read(reader, RequestUse::$use)?,)*)?
                            })
                        }),
                    )*
                    CallKind::Wait => Ok(Self::Wait { request: reader.request(RequestUse::Waited)? }),
                    CallKind::Unmodelled => reader.elsewhere(),
                }
            }

            /// Finds the indices of a call, and updates the requests and the channels of the rank.
            pub(crate) fn resolve(&self, builder: &mut RankBuilder<'_>) -> Result<Action, ResolveError> {
                match self {
                    $(
                        Self::$variant { $($($op_n,)*)? $($($op_r,)*)? $($($v,)*)? } => {
                            own_or!([$($resolved)?] builder ($($($op_n,)*)? $($($op_r,)*)? $($($v,)*)?) {
                                let call = Call::$variant {
                                    $($($n: builder.$n_role($op_n)?,)*)?
                                    $($($r: builder.slots($op_r, RequestUse::$use)?,)*)?
                                    $($($v: *$v,)*)?
                                };
                                builder.complete(self)?;
                                Ok(builder.intern(call))
                            })
                        }
                    )*
                    Self::Wait { request } => builder.wait(*request),
                    Self::Unmodelled(call) => Ok(builder.intern(Call::Unmodelled(call.clone()))),
                }
            }
        }
    };
}

pub(super) use {calls, own_or};
