// swift-tools-version: 6.1
import PackageDescription

// What an app takes: the SDK, without the server, whose manifest is Server/Package.swift.

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

// Apple's systems have CryptoKit: there no C library is part of the package at all.
#if os(macOS)
  let cryptography: [Target.Dependency] = []
  let hashing: [Target.Dependency] = []
  let systemTargets: [Target] = []
#else
  let cryptography: [Target.Dependency] = ["Cryptography"]
  let hashing: [Target.Dependency] = ["COpenSSL"]
  let systemTargets: [Target] = [
    .systemLibrary(
      name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .target(
      name: "Cryptography", dependencies: ["Wire", "COpenSSL"], swiftSettings: settings),
  ]
#endif

let package = Package(
  name: "belfry",
  // Where `Duration` is.
  platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
  products: [
    .library(name: "NotificationHubs", targets: ["NotificationHubs"]),
    .library(name: "SecurePush", targets: ["SecurePush"]),
    .library(name: "PushDevice", targets: ["PushDevice"]),
    .library(name: "PushDeviceSecure", targets: ["PushDeviceSecure"]),
    .library(name: "PushDeviceTesting", targets: ["PushDeviceTesting"]),
  ],
  targets: systemTargets + [
    .target(name: "Wire", swiftSettings: settings),
    .target(
      name: "NotificationHubs", dependencies: ["Wire"] + hashing, swiftSettings: settings),
    .target(
      name: "SecurePush", dependencies: ["Wire", "NotificationHubs"] + cryptography,
      swiftSettings: settings),
    .target(
      name: "PushDevice", dependencies: ["Wire", "NotificationHubs"],
      resources: [.copy("PrivacyInfo.xcprivacy")], swiftSettings: settings),
    .target(
      name: "PushDeviceSecure", dependencies: ["NotificationHubs", "PushDevice", "SecurePush"],
      swiftSettings: settings),
    .target(
      name: "PushDeviceTesting", dependencies: ["NotificationHubs", "PushDevice"],
      swiftSettings: settings),
  ]
)
