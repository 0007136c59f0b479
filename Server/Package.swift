// swift-tools-version: 6.1
import PackageDescription

// Everything, server and SDK, as it is developed: Sources and Tests are links to the folders above. An
// app takes the manifest at the root, which asks for no C library on Apple's systems and for older ones.

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),  // a C type cannot slip into public API
]

// Debian's CRoaring ships no pkg-config file (its headers and library stand in the default paths);
// Homebrew's does.
#if os(macOS)
  let roaringPkgConfig: String? = "roaring"
#else
  let roaringPkgConfig: String? = nil
#endif

let package = Package(
  name: "belfry",
  platforms: [.macOS(.v15)],  // `Mutex`
  products: [
    .library(name: "NotificationHubs", targets: ["NotificationHubs"]),
    .library(name: "SecurePush", targets: ["SecurePush"]),
    .library(name: "PushDevice", targets: ["PushDevice"]),
    .library(name: "PushDeviceSecure", targets: ["PushDeviceSecure"]),
    .library(name: "PushDeviceTesting", targets: ["PushDeviceTesting"]),
    .executable(name: "belfry", targets: ["belfry"]),
    .executable(name: "belfry-bench", targets: ["belfry-bench"]),
  ],
  targets: [
    // Floor 0: one C library each, and the forms in which things are written.
    .systemLibrary(
      name: "CNghttp2", pkgConfig: "libnghttp2",
      providers: [.apt(["libnghttp2-dev"]), .brew(["libnghttp2"])]),
    .systemLibrary(
      name: "COpenSSL", pkgConfig: "openssl",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(
      name: "CMicrohttpd", pkgConfig: "libmicrohttpd",
      providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "CPostgres", pkgConfig: "libpq",
      providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(
      name: "CRoaring", pkgConfig: roaringPkgConfig,
      providers: [.apt(["libroaring-dev"]), .brew(["croaring"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    .target(name: "Wire", swiftSettings: settings),
    .target(name: "CWebFiles"),  // the files of HubServer's web pages, in the binary itself

    // Floor 1.
    .target(
      name: "NotificationHubs",
      dependencies: [
        "Wire",
        .target(name: "COpenSSL", condition: .when(platforms: [.linux, .windows, .android])),
      ],
      swiftSettings: settings),
    .target(
      name: "Cryptography", dependencies: ["Wire", "COpenSSL"], swiftSettings: settings),
    .target(
      name: "SQLDatabase", dependencies: ["CSQLite", "CPostgres"], swiftSettings: settings),
    .target(name: "HTTPClient", dependencies: ["Wire", "CCurl"], swiftSettings: settings),

    // Floor 2.
    .target(
      name: "HTTP2", dependencies: ["CNghttp2", "COpenSSL"], swiftSettings: settings),
    .target(
      name: "SecurePush",
      dependencies: [
        "Wire", "NotificationHubs",
        .target(name: "Cryptography", condition: .when(platforms: [.linux, .windows, .android])),
      ],
      swiftSettings: settings),
    .target(
      name: "PushDevice", dependencies: ["Wire", "NotificationHubs"],
      exclude: ["PrivacyInfo.xcprivacy"],  // for apps only, whose manifest is the one at the root
      swiftSettings: settings),
    .target(
      name: "HubCore", dependencies: ["Wire", "NotificationHubs"], swiftSettings: settings),
    .target(
      name: "Authentication",
      dependencies: ["Wire", "NotificationHubs", "Cryptography", "SQLDatabase"],
      swiftSettings: settings),

    // Floor 3.
    .target(
      name: "HTTPServer", dependencies: ["Wire", "CMicrohttpd", "HTTP2"], swiftSettings: settings),
    .target(
      name: "HubStorage",
      dependencies: [
        "Wire", "HubCore", "NotificationHubs", "Authentication", "SQLDatabase", "CRoaring",
      ],
      swiftSettings: settings),
    .target(
      name: "PushGateways",
      dependencies: [
        "Wire", "HubCore", "NotificationHubs", "HTTP2", "HTTPClient", "Cryptography",
      ],
      swiftSettings: settings),
    .target(
      name: "PushDeviceSecure", dependencies: ["NotificationHubs", "PushDevice", "SecurePush"],
      swiftSettings: settings),
    .target(
      name: "PushDeviceTesting", dependencies: ["NotificationHubs", "PushDevice"],
      swiftSettings: settings),

    // Floor 4.
    .target(
      name: "PushEmulator",
      dependencies: ["Wire", "HTTP2", "HTTPClient", "HTTPServer", "Cryptography"],
      swiftSettings: settings),
    .target(
      name: "HubServer",
      dependencies: [
        "Wire", "CWebFiles", "CZlib", "HubCore", "NotificationHubs", "HTTPServer", "HTTPClient",
        "Cryptography", "Authentication",
      ],
      exclude: ["Portal/Files", "Portal/jsconfig.json"],  // CWebFiles has them
      swiftSettings: settings),

    .target(
      name: "SecurePushBackend",
      dependencies: [
        "Wire", "NotificationHubs", "SecurePush", "Cryptography", "Authentication", "SQLDatabase",
        "HTTPServer",
      ],
      swiftSettings: settings),

    // Floor 5.
    .executableTarget(
      name: "belfry",
      dependencies: [
        "Wire", "NotificationHubs", "Cryptography", "SQLDatabase", "HTTPServer", "HTTPClient",
        "HubCore", "HubStorage", "PushGateways", "PushEmulator", "PushDevice", "PushDeviceSecure",
        "HubServer", "SecurePush", "SecurePushBackend", "Authentication",
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "belfry-bench",
      dependencies: [
        "Wire", "NotificationHubs", "Cryptography", "SQLDatabase", "HTTPServer", "HTTP2", "HubCore",
        "HubStorage", "PushGateways", "PushEmulator", "HubServer", "SecurePush",
        "SecurePushBackend", "Authentication",
      ],
      swiftSettings: settings),

    // For tests only: the contract of a store, the simulator, fakes, clocks, the kill test.
    .target(
      name: "StoreContract", dependencies: ["HubCore", "NotificationHubs", "Wire"],
      path: "Tests/StoreContract", swiftSettings: settings),
    .target(
      name: "HubSimulation",
      dependencies: [
        "Wire", "NotificationHubs", "Cryptography", "HTTP2", "HTTPClient", "HubCore",
        "PushGateways",
      ],
      path: "Tests/HubSimulation", swiftSettings: settings),
    .executableTarget(
      name: "belfry-simulate",
      dependencies: ["HubSimulation", "StoreContract", "HubCore", "NotificationHubs"],
      path: "Tests/belfry-simulate", swiftSettings: settings,
      // Libraries have to see the clock that the program defines in place of libc's.
      linkerSettings: [.unsafeFlags(["-Xlinker", "--export-dynamic"], .when(platforms: [.linux]))]),
    .target(
      name: "HubTesting",
      dependencies: [
        "StoreContract", "NotificationHubs", "Cryptography", "COpenSSL", "HTTPServer", "HTTPClient",
        "HTTP2",
        "HubCore", "HubStorage", "PushEmulator", "CSQLite", "SQLDatabase",
      ],
      path: "Tests/HubTesting", swiftSettings: settings),
    .executableTarget(
      name: "belfry-torture", dependencies: ["HubTesting"], path: "Tests/belfry-torture",
      swiftSettings: settings),
    .testTarget(name: "WireTests", dependencies: ["Wire"], swiftSettings: settings),
    .testTarget(
      name: "NotificationHubsTests", dependencies: ["Wire", "NotificationHubs"],
      exclude: ["Fixtures"],
      swiftSettings: settings),
    .testTarget(
      name: "PushDeviceTests",
      dependencies: ["NotificationHubs", "PushDevice", "PushDeviceTesting"],
      swiftSettings: settings),
    .testTarget(
      name: "PushDeviceSecureTests",
      dependencies: [
        "NotificationHubs", "PushDevice", "PushDeviceSecure", "PushDeviceTesting", "SecurePush",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SecurePushTests", dependencies: ["Wire", "SecurePush", "NotificationHubs"],
      exclude: ["Fixtures"], swiftSettings: settings),
    .testTarget(
      name: "CryptographyTests", dependencies: ["Wire", "Cryptography"], exclude: ["Fixtures"],
      swiftSettings: settings),
    .testTarget(
      name: "SQLDatabaseTests", dependencies: ["SQLDatabase", "HubTesting"],
      swiftSettings: settings),
    .testTarget(
      name: "HTTPServerTests",
      dependencies: ["Wire", "HTTPServer", "HTTP2", "Cryptography", "HubTesting"],
      swiftSettings: settings),
    .testTarget(
      name: "HTTPClientTests",
      dependencies: ["HTTPClient", "HTTPServer", "Cryptography", "HubTesting"],
      swiftSettings: settings),
    .testTarget(
      name: "HTTP2Tests", dependencies: ["HTTP2", "COpenSSL", "CNghttp2", "Cryptography"],
      swiftSettings: settings),
    .testTarget(
      name: "HubCoreTests",
      dependencies: [
        "Wire", "HubCore", "HubStorage", "NotificationHubs", "SQLDatabase", "HubTesting",
        "StoreContract",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "HubStorageTests",
      dependencies: [
        "HubStorage", "HubCore", "NotificationHubs", "Authentication", "SQLDatabase", "HubTesting",
        "StoreContract", "HubSimulation",
      ],
      swiftSettings: settings),
    // What belfry-simulate does, run as a child: its hook is for a whole process.
    .testTarget(
      name: "SimulationTests", dependencies: ["HubTesting"], swiftSettings: settings),
    .testTarget(
      name: "PushGatewaysTests",
      dependencies: [
        "Wire", "PushGateways", "PushEmulator", "HubCore", "NotificationHubs", "HTTP2",
        "HTTPClient",
        "HTTPServer", "Cryptography", "HubTesting", "StoreContract", "HubSimulation",
      ],
      exclude: ["Fixtures"], swiftSettings: settings),
    .testTarget(
      name: "PushEmulatorTests",
      dependencies: [
        "Wire", "PushEmulator", "HTTP2", "HTTPClient", "HTTPServer", "Cryptography", "HubTesting",
      ],
      exclude: ["Fixtures"], swiftSettings: settings),
    .testTarget(
      name: "HubServerTests",
      dependencies: [
        "Wire", "HubServer", "HubCore", "HubStorage", "NotificationHubs", "HTTPServer",
        "Cryptography", "Authentication", "SQLDatabase", "HubTesting", "StoreContract",
      ],
      exclude: ["Fixtures"], swiftSettings: settings),
    .testTarget(
      name: "SecurePushBackendTests",
      dependencies: [
        "Wire", "SecurePushBackend", "SecurePush", "NotificationHubs", "Cryptography",
        "SQLDatabase",
        "HTTPServer", "HubCore", "HubServer", "Authentication", "HubTesting",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "BelfryTests",
      dependencies: [
        "Wire", "belfry", "Authentication", "NotificationHubs", "Cryptography", "HTTPServer",
        "PushEmulator",
        "HubCore", "HubStorage", "HubTesting", "StoreContract",
      ],
      swiftSettings: settings),
  ]
)
