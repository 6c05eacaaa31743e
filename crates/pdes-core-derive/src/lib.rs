//! Derives `pdes_core::State`: every field of a type is visited, in the order of their declaration. A field whose type has no role
//! does not compile, until it says which one it has.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, LitStr, parse_macro_input, parse_quote};

/// Derives `State` of a struct or an enum.
///
/// The type is a *value*: it is saved and loaded as a whole by serde, and compared and repeated field by field. With
/// `#[state(in_place)]` a struct is saved and loaded field by field, too, into one that has the same context; its fields may borrow
/// what is not state.
///
/// # Attributes of fields
/// - none: the type of the field implements `State`, which says its role;
/// - `#[state(plain)]`: equal in equal states, and the same after a repetition; of any type that serde knows;
/// - `#[state(saved = "why")]`: saved and loaded, and neither compared nor repeated;
/// - `#[state(skip = "why")]`: no state.
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(input).unwrap_or_else(Error::into_compile_error).into()
}

/// Role of a field that its type does not say.
enum Role {
    OfType,
    Plain,
    Saved,
    Skipped,
}

fn expand(mut input: DeriveInput) -> Result<TokenStream, Error> {
    let is_in_place = is_in_place(&input)?;
    let (arms, of_type) = match &input.data {
        Data::Struct(data) => {
            let (pattern, visits, of_type) = fields(&data.fields)?;
            (quote! { let Self #pattern = self; #visits }, of_type)
        }
        Data::Enum(data) => {
            if is_in_place {
                return Err(Error::new(input.span(), "an enum is a value: it cannot be visited in place"));
            }
            let (mut arms, mut of_types) = (TokenStream::new(), Vec::new());
            for (number, variant) in (0_u32..).zip(&data.variants) {
                let (pattern, visits, of_type) = fields(&variant.fields)?;
                let name = &variant.ident;
                arms.extend(quote! { Self::#name #pattern => { visitor.variant(#number); #visits } });
                of_types.extend(of_type);
            }
            (quote! { match self { #arms } }, of_types)
        }
        Data::Union(_) => return Err(Error::new(input.span(), "a union has no state")),
    };
    let value = (!is_in_place).then(|| quote! { if visitor.saves_whole(self) { return; } });
    let name = &input.ident;
    let parameters: Vec<_> = input.generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    let clause = input.generics.make_where_clause();
    for field in &of_type {
        if mentions(field, &parameters) {
            clause.predicates.push(parse_quote! { #field: ::pdes_core::State });
        }
    }
    if !is_in_place && !parameters.is_empty() {
        clause.predicates.push(parse_quote! { Self: ::serde::Serialize + ::serde::de::DeserializeOwned });
    }
    let (generics, arguments, clause) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::pdes_core::State for #name #arguments #clause {
            fn visit(&mut self, visitor: &mut ::pdes_core::StateVisitor<'_>) {
                #value
                #arms
            }
        }
    })
}

/// Returns whether a type is visited in place.
fn is_in_place(input: &DeriveInput) -> Result<bool, Error> {
    let mut is_in_place = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("state")) {
        attribute.parse_nested_meta(|meta| {
            is_in_place = meta.path.is_ident("in_place");
            if is_in_place { Ok(()) } else { Err(meta.error("expected in_place")) }
        })?;
    }
    Ok(is_in_place)
}

/// Returns the pattern of fields, their visits, and the types that say their roles.
fn fields(fields: &Fields) -> Result<(TokenStream, TokenStream, Vec<syn::Type>), Error> {
    let (mut bindings, mut visits, mut of_type) = (Vec::new(), TokenStream::new(), Vec::new());
    for (number, field) in fields.iter().enumerate() {
        let binding = field.ident.clone().unwrap_or_else(|| format_ident!("field_{number}"));
        let role = role(field)?;
        visits.extend(match role {
            Role::OfType => quote! { ::pdes_core::State::visit(#binding, visitor); },
            Role::Plain => quote! { visitor.plain(#binding); },
            Role::Saved => quote! { visitor.saved(#binding); },
            Role::Skipped => quote! { let _ = #binding; },
        });
        if matches!(role, Role::OfType) {
            of_type.push(field.ty.clone());
        }
        bindings.push(binding);
    }
    let pattern = match fields {
        Fields::Named(_) => quote! { { #(#bindings),* } },
        Fields::Unnamed(_) => quote! { ( #(#bindings),* ) },
        Fields::Unit => TokenStream::new(),
    };
    Ok((pattern, visits, of_type))
}

fn role(field: &Field) -> Result<Role, Error> {
    let mut role = Role::OfType;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("state")) {
        attribute.parse_nested_meta(|meta| {
            role = if meta.path.is_ident("plain") {
                Role::Plain
            } else if meta.path.is_ident("saved") {
                meta.value()?.parse::<LitStr>()?;
                Role::Saved
            } else if meta.path.is_ident("skip") {
                meta.value()?.parse::<LitStr>()?;
                Role::Skipped
            } else {
                return Err(meta.error("expected plain, saved = \"why\" or skip = \"why\""));
            };
            Ok(())
        })?;
    }
    Ok(role)
}

/// Returns whether a type mentions one of some type parameters.
fn mentions(ty: &syn::Type, parameters: &[syn::Ident]) -> bool {
    fn any(tokens: TokenStream, parameters: &[syn::Ident]) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => parameters.contains(&ident),
            proc_macro2::TokenTree::Group(group) => any(group.stream(), parameters),
            _ => false,
        })
    }
    any(quote! { #ty }, parameters)
}
