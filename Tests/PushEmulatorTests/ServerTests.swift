import Foundation
import HTTP2
import HTTPServer
import Testing
import Wire

@testable import PushEmulator

/// Starting and stopping, and what is kept between two runs.
@Suite(.timeLimit(.minutes(5))) struct ServerTests {
  static func temporaryDirectory() throws -> String {
    let path = FileManager.default.temporaryDirectory
      .appendingPathComponent("emulator-" + UUID().uuidString).path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  @Test(
    "an address that is not this machine's own is refused without the flag",
    arguments: [
      "0.0.0.0", "::", "192.0.2.1", "127.evil.example.com", "example.com",
    ])
  func remoteAddresses(host: String) async throws {
    var options = EmulatorOptions.onFreePorts
    options.host = host
    await #expect(throws: EmulatorError.notLoopback(host: host)) {
      try await EmulatorServer(options).start()
    }
  }

  @Test("a port in use is named")
  func portInUse() async throws {
    try await Harness.run { harness in
      var options = EmulatorOptions.onFreePorts
      let control = try #require(UInt16(harness.addresses.control.split(separator: ":").last ?? ""))
      options.controlPort = control
      await #expect(throws: HTTPListenerError.addressInUse(host: "127.0.0.1", port: control)) {
        try await EmulatorServer(options).start()
      }
      options = .onFreePorts
      let apns = try #require(
        UInt16(harness.addresses.apnsProduction.split(separator: ":").last ?? ""))
      options.ports[.apnsProduction] = apns
      let error = await #expect(throws: HTTP2ServerError.self) {
        try await EmulatorServer(options).start()
      }
      #expect(error?.kind == .address)
      #expect(error?.description.contains(String(apns)) == true)
    }
  }

  @Test("the authority and the phones come back with the same files")
  func snapshotRoundTrip() async throws {
    let directory = try Self.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    func change(_ options: inout EmulatorOptions) {
      options.authorityDirectory = directory + "/authority"
      options.stateFile = directory + "/emulator.json"
    }
    let texts = ["shown", "waits"]
    var authority = ""
    var before: [JSONValue] = []
    var app: EmulatorServer.App?
    var history: [JSONValue] = []
    func read(_ harness: Harness) async throws -> [JSONValue] {
      [
        try await harness.control("GET", "/v1/apps"),
        try await harness.control("GET", "/v1/devices"),
        try await harness.control("GET", "/v1/devices/dev-1"),
        try await harness.control("GET", "/v1/devices/dev-1/stored"),
      ]
    }
    try await Harness.run(.changed(change)) { harness in
      authority = harness.addresses.authorityPEM
      #expect(harness.addresses.authorityFile == directory + "/authority/ca.pem")
      let made = try harness.server.app()
      let other = try harness.server.app(bundleID: "com.example.deleted")
      let device = try await harness.device(made)
      _ = try await harness.device(other)
      _ = try await harness.device(made, [.init("state", "expired")])
      try await harness.control("DELETE", "/v1/apps/\(other.appID)")
      let jwt = try Harness.token(made)
      let client = try harness.connect()
      for (text, online) in zip(texts, [true, false]) {
        try await harness.control("PATCH", "/v1/devices/dev-1", ["online": .bool(online)])
        let reply = try await client.push(
          to: device.token, made, jwt: jwt, [("apns-collapse-id", text)],
          body: #"{"aps":{"alert":"\#(text)"}}"#)
        #expect(reply.status == 200)
      }
      try await harness.control("POST", "/v1/devices/dev-1/rotate")
      before = try await read(harness)
      history = try await harness.events("dev-1").map(\.data)
      app = made
    }
    #expect(history.count >= 3)
    let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/emulator.json")
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    try await Harness.run(.changed(change)) { harness in
      #expect(harness.addresses.authorityPEM == authority)
      #expect(try await read(harness) == before)
      #expect(try await harness.events("dev-1").map(\.data) == history)
      let again = try harness.server.app()
      #expect(again.p8 == app?.p8)
      #expect(again.keyID == app?.keyID)
      #expect(try await harness.device(again).deviceID == "dev-4")
      #expect(try await harness.server.control("GET", "/v1/devices/dev-2").status == 404)
      try await harness.control("PATCH", "/v1/devices/dev-1", ["online": true])
      let shown = try await harness.notifications("dev-1")
      #expect(shown.map { $0["payload"]?["aps"]?["alert"]?.text } == texts)
      let old = try #require(before[2]["handles"]?.items.first?["handle"]?["token"]?.text)
      let reply = try await harness.connect().push(to: old, again)
      #expect(reply.reason == "Unregistered")
    }
  }

  @Test("a state file of version 1 is read, and what is saved of it is the same")
  func oldStateFile() throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Fixtures/state-version-1.json")
    var state = EmulatorState()
    try StateFile(path: file.path).load(into: &state)
    for service in PushService.allCases {
      #expect(state.apps.values.filter { $0 == service }.count == 2, "\(service)")
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let saved = try JSONValue.read(Array(encoder.encode(Snapshot(state))), uniqueNames: true)
    let old = try JSONValue.read(Array(Data(contentsOf: file)), uniqueNames: true)
    #expect(saved.members?.map(\.name) == old.members?.map(\.name))
    // Those of feeds are in no order.
    for member in old.members ?? [] where member.name != "feeds" {
      #expect(saved.member(member.name) == member.value, "\(member.name)")
    }
  }

  @Test("changes of apps and devices reach the file while the emulator runs")
  func savedWhileRunning() async throws {
    let directory = try Self.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await Harness.run(.changed { $0.stateFile = directory + "/emulator.json" }) { harness in
      let app = try harness.server.app()
      try await eventually {
        guard let data = FileManager.default.contents(atPath: directory + "/emulator.json")
        else { return false }
        let keys = try JSONValue.read(Array(data), uniqueNames: true)["keys"]?.items ?? []
        return keys.contains { $0["kid"]?.text == app.keyID }
      }
    }
  }

  @Test("a state file that cannot be written is reported, and the emulator goes on")
  func unwritableFile() async throws {
    let directory = try Self.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    // A folder stands where the file should be.
    let path = directory + "/emulator.json"
    let (problems, continuation) = AsyncStream.makeStream(of: EmulatorError.self)
    try await Harness.run(
      .changed { options in
        options.stateFile = path
        options.onProblem = { continuation.yield($0) }
      }
    ) { harness in
      try FileManager.default.createDirectory(
        atPath: path + "/occupied", withIntermediateDirectories: true)
      _ = try harness.server.app()
      var iterator = problems.makeAsyncIterator()
      let problem = await iterator.next()
      #expect(problem?.description.contains(path) == true)
      #expect(try await harness.control("GET", "/v1/apps")["apps"]?.items.count == 1)
    }
  }

  @Test("a damaged file is named and left alone")
  func damagedFiles() async throws {
    let directory = try Self.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let file = directory + "/emulator.json"
    for text in ["{", #"{"version":99}"#, "[]"] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: file))
      var options = EmulatorOptions.onFreePorts
      options.stateFile = file
      let error = await #expect(throws: EmulatorError.self) {
        try await EmulatorServer(options).start()
      }
      #expect(error?.description.contains(file) == true)
      #expect(FileManager.default.contents(atPath: file) == Data(text.utf8))
    }
    try Data("no certificate".utf8).write(to: URL(fileURLWithPath: directory + "/ca.pem"))
    try Data("no key".utf8).write(to: URL(fileURLWithPath: directory + "/ca-key.pem"))
    var options = EmulatorOptions.onFreePorts
    options.authorityDirectory = directory
    let error = await #expect(throws: EmulatorError.self) {
      try await EmulatorServer(options).start()
    }
    #expect(error?.description.contains("ca.pem") == true)
  }

  @Test("two emulators run side by side, and a stopped one can start again")
  func sideBySide() async throws {
    try await Harness.run { one in
      try await Harness.run { two in
        #expect(one.addresses.control != two.addresses.control)
        #expect(one.addresses.apnsProduction != two.addresses.apnsProduction)
      }
    }
    let server = EmulatorServer(.onFreePorts)
    let first = try await server.start()
    #expect(try await server.start() == first)
    await server.stop()
    await server.stop()
    #expect(try await server.start().control.hasPrefix("http://127.0.0.1:"))
    await server.stop()
  }
}
