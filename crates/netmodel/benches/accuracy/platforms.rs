//! The platforms of the comparison: 12.5 GB/s and 500 ns for every cable.

/// Name and description.
pub(crate) const PLATFORMS: [(&str, &str); 4] = [
    (
        "fat tree 1:1",
        "[topology]\nkind = \"fat_tree\"\nspeed = \"10Gf\"\nbandwidth = \"12.5GBps\"\nlatency = \"500ns\"\n\
         levels = [{ children = 16, parents = 1 }, { children = 8, parents = 16 }]\n",
    ),
    (
        "fat tree 4:1",
        "[topology]\nkind = \"fat_tree\"\nspeed = \"10Gf\"\nbandwidth = \"12.5GBps\"\nlatency = \"500ns\"\n\
         levels = [{ children = 16, parents = 1 }, { children = 8, parents = 4 }]\n",
    ),
    (
        "torus",
        "[topology]\nkind = \"torus\"\ndims = [8, 4, 4]\nspeed = \"10Gf\"\nbandwidth = \"12.5GBps\"\nlatency = \"500ns\"\n",
    ),
    (
        "dragonfly",
        "[topology]\nkind = \"dragonfly\"\nspeed = \"10Gf\"\nbandwidth = \"12.5GBps\"\nlatency = \"500ns\"\n\
         groups = 4\nblue = 4\nchassis = 2\nblack = 2\nblades = 4\nnodes = 4\n",
    ),
];
