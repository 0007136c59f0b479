// swift-tools-version: 6.1
import PackageDescription

// An app's package that takes the SDK alone; script/test builds it.
let package = Package(
  name: "Client",
  platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
  dependencies: [.package(name: "belfry", path: "../..")],
  targets: [
    .executableTarget(
      name: "Client",
      dependencies: [
        .product(name: "NotificationHubs", package: "belfry"),
        .product(name: "SecurePush", package: "belfry"),
      ])
  ])
