"""The words that documents are written with: six registers, their names, fields and filler.

Each list of names holds 48 words in alphabetical order, so that a profile can take every second one.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribute:
    """A field that a question can ask for."""

    name: str
    prefix: str
    """Before the digits, with its hyphen; empty for plain numbers."""
    low: int
    high: int
    """Bounds of the number in v1."""
    short_low: int
    short_high: int
    """Bounds of the number with short_values."""
    separators: bool
    """Whether thousands are separated by commas."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Register:
    """One entity type and the section that lists its entries."""

    type: str
    section: str
    link: str
    """Field that names an entity of the next register."""
    attributes: tuple[Attribute, Attribute]
    status: str
    states: tuple[str, ...]
    suffixes: tuple[str, ...]
    """What turns a name into its near-miss twin."""
    first: tuple[str, ...]
    second: tuple[str, ...]


def _code(name: str, prefix: str) -> Attribute:
    return Attribute(name=name, prefix=prefix, low=1000, high=9999, short_low=100, short_high=999, separators=False)


def _number(name: str, low: int, high: int, short_low: int = 1000, short_high: int = 9999, separators: bool = True) -> Attribute:
    return Attribute(name=name, prefix="", low=low, high=high, short_low=short_low, short_high=short_high, separators=separators)


REGISTERS = (
    Register(
        type="project",
        section="Projects",
        link="Lead",
        attributes=(_code("Charge code", "PJ-"), _number("Budget", 1_000_000, 9_999_999)),
        status="Phase",
        states=("planned", "active", "paused", "closing"),
        suffixes=("II", "Next", "Pilot"),
        first=tuple(
            "Amber Arctic Ashen Azure Bold Brass Bright Bronze Calm Cobalt Copper Coral Crimson Crystal Dusky Ebony Emerald Fleet Frosted Gilded "
            "Golden Granite Hazel Hidden Indigo Iron Ivory Jade Keen Lively Lunar Maroon Misty Noble Ochre Opal Pale Pearl Quiet Rapid Rustic Scarlet "
            "Silent Silver Solar Swift Umber Velvet".split()
        ),
        second=tuple(
            "Adder Badger Beaver Bison Bobcat Condor Cougar Crane Curlew Dolphin Eagle Ermine Falcon Ferret Finch Gannet Gecko Gibbon Heron Hornet "
            "Ibex Jackal Jaguar Kestrel Lemur Leopard Lynx Magpie Marmot Marten Merlin Narwhal Ocelot Osprey Otter Panther Pelican Plover Puffin Quail "
            "Raven Sparrow Stoat Stork Tapir Viper Walrus Weasel".split()
        ),
    ),
    Register(
        type="person",
        section="People",
        link="Unit",
        attributes=(_number("Badge", 10_000, 99_999, separators=False), _code("Extension", "EX-")),
        status="Grade",
        states=("junior", "senior", "principal", "visiting"),
        suffixes=("Jr", "Sr", "Minor"),
        first=tuple(
            "Ada Agnes Alma Amos Anton Basil Beata Boris Bruno Carla Cecil Clara Cyril Dora Edgar Edith Elsa Emil Felix Flora Fritz Gerda Greta Gustav "
            "Hanna Hugo Ida Irma Ivan Jonas Josef Karin Klara Lena Leo Lotte Magda Marta Milo Nora Olga Oskar Paula Rosa Ruben Selma Tilda Viktor".split()
        ),
        second=tuple(
            "Abbott Adler Baker Barlow Becker Bloom Brandt Carver Castle Conway Cooper Dalton Decker Doyle Draper Ekman Farrow Fisher Foster Garner "
            "Glover Grimes Hobbs Holt Hooper Jensen Keller Kramer Larsen Lind Mason Mercer Miller Nash Novak Olsen Parker Porter Quincy Reeves Sawyer "
            "Sexton Thorne Tucker Vance Walker Weaver Winter".split()
        ),
    ),
    Register(
        type="department",
        section="Departments",
        link="Site",
        attributes=(_code("Cost centre", "CC-"), _number("Headcount", 1_000, 9_999)),
        status="Standing",
        states=("new", "stable", "growing", "merging"),
        suffixes=("Group", "Office", "Reserve"),
        first=tuple(
            "Advance Airport Applied Archive Asset Border Bridge Canal Career Cargo Census Civic Claims Climate Coastal Credit Custody Data Debt "
            "Digital Energy Estate Export Field Fiscal Fleetwide Forest Freight Global Grant Harbour Heritage Housing Import Inland Labour Legal Library "
            "Marine Market Media Metro Mining Network Patent Payroll Pension Public".split()
        ),
        second=tuple(
            "Accounts Affairs Analysis Appeals Audits Briefing Bureau Capital Charting Control Delivery Design Desk Dispatch Division Drafting Editing "
            "Finance Forecast Funding Hiring Imaging Insight Intake Issues Lending Liaison Mapping Methods Metrics Notices Outreach Permits Planning "
            "Policy Quality Records Relief Repair Research Review Safety Scouting Security Services Staffing Studies Support".split()
        ),
    ),
    Register(
        type="facility",
        section="Facilities",
        link="Region",
        attributes=(_number("Floor area", 10_000, 99_999), _code("Permit", "FP-")),
        status="Condition",
        states=("sound", "worn", "renewed", "leased"),
        suffixes=("East", "North", "South"),
        first=tuple(
            "Acacia Alder Almond Aspen Balsam Bamboo Banyan Bay Beech Birch Briar Cedar Cherry Chestnut Citron Cypress Dogwood Elder Elm Fern Fir Gorse "
            "Hawthorn Hemlock Hickory Holly Hornbeam Ironbark Jarrah Juniper Larch Laurel Lilac Linden Locust Magnolia Mahogany Maple Myrtle Oak Olive "
            "Palm Pecan Pine Poplar Redwood Rowan Spruce".split()
        ),
        second=tuple(
            "Annex Arcade Arena Barn Basin Bastion Block Campus Centre Chamber Cloister Complex Court Depot Dock Dome Exchange Factory Forge Foundry "
            "Gallery Garage Gate Hall Hangar Hub Kiln Lab Lodge Loft Manor Mill Mint Pavilion Pier Plant Quarter Refinery Rotunda Shed Silo Station Store "
            "Studio Terminal Tower Vault Yard".split()
        ),
    ),
    Register(
        type="region",
        section="Regions",
        link="Primary carrier",
        attributes=(_code("Zone", "ZN-"), _number("Population", 100_000, 999_999)),
        status="Tariff",
        states=("low", "mixed", "high", "seasonal"),
        suffixes=("Fringe", "Outer", "Rim"),
        first=tuple(
            "Alpine Ancient Arid Barren Broad Central Chalk Clear Cold Dark Deep Distant Dry Eastern Empty Far Fertile Flat Foggy Grand Great Green Grey "
            "High Hollow Inner Lesser Lone Long Low Lower Mid Narrow Near New Northern Old Open Outlying Rocky Rolling Royal Sandy Southern Stony Upper "
            "Western Wild".split()
        ),
        second=tuple(
            "Ashmere Barrow Bluff Bogland Brae Canyon Cape Cliffs Coast Combe Cove Crags Dale Delta Downs Dunes Fells Fen Fjord Flats Glen Gorge Heath "
            "Highland Hills Isles Karst Lagoon Lakes Levels Lowland Marsh Meadow Mesa Moor Oasis Peaks Plain Plateau Prairie Reach Ridge Shore Steppe "
            "Tundra Vale Valley Wetland".split()
        ),
    ),
    Register(
        type="vendor",
        section="Vendors",
        link="Account manager",
        attributes=(_code("Contract", "VC-"), _number("Turnover", 1_000_000, 9_999_999)),
        status="Rating",
        states=("strong", "fair", "watch", "unrated"),
        suffixes=("Ltd", "Overseas", "Trading"),
        first=tuple(
            "Acorn Anchor Apex Arrow Atlas Aurora Beacon Bolt Canyonside Cascade Comet Compass Crest Crown Delphi Ember Falcata Fjordline Flint Gale "
            "Harvest Helix Horizon Jetstream Keystone Lantern Lighthouse Magnet Meridian Meteor Nimbus Northstar Nova Orbit Orion Paragon Phoenix Pinnacle "
            "Polaris Prism Quartz Quasar Sable Signal Summit Tempest Vertex Zenith".split()
        ),
        second=tuple(
            "Airways Brokers Cables Carriage Carriers Cartage Couriers Express Ferries Forwarding Freighters Haulage Holdings Industries Junction Lines "
            "Linkage Logistics Longhaul Motors Movers Packers Partners Pilots Pipelines Portage Postal Rail Relay Rigging Roadways Rollers Routes Runners "
            "Sealift Shipping Stevedores Storage Supply Systems Tankers Towage Traffic Transit Transport Trucking Vans Wagons".split()
        ),
    ),
)

NOISE_SECTIONS = ("Minutes", "Logs", "Bulletins")

FILLER = tuple(
    clause.strip()
    for clause in """
agreed, noted, filed, signed, checked, archived,
as agreed, on track, no change, under review, by request, to confirm,
awaiting final copy, sent by post, kept on file, seen last week, minor edits pending, see annual plan,
second draft was approved, no further action required, figures are being checked, the copy is complete, team informed by letter, stock counted every spring,
the next visit is planned, open points moved to autumn, short delay with the forms, all signatures are on file, keys returned to the desk,
the board asked for more detail, a summary will follow next month, older papers were moved to storage, training for new staff is booked,
nothing to report since the last round, the form was filled in by hand, visitors must register at the main desk, the old entry is kept for reference
""".replace("\n", " ").split(",")
    if clause.strip()
)
"""Clauses of notes and noise: words only, no digits, no names."""

YEARS = (2010, 2024)
"""Bounds of the years in superseded fields."""
