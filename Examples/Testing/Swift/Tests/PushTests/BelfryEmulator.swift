import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The push services on this machine, reached by their real names: a `belfry emulator` with a proxy. It takes the
/// credentials that the program under test has. `BELFRY` names another program than `belfry`.
final class BelfryEmulator: Sendable {
  struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  private struct Addresses: Decodable {
    let control: URL
    let proxy: String
    let ca: String
  }

  private let process: Process
  private let control: URL
  /// For the program under test.
  let environment: [String: String]

  /// Starts it, and returns when it serves.
  init() throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      ProcessInfo.processInfo.environment["BELFRY"] ?? "belfry", "emulator", "--json", "--port",
      "0", "--proxy", "0",
      "--accept-any-credential",
    ]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    var line = Data()
    while let byte = try output.fileHandleForReading.read(upToCount: 1), !byte.isEmpty,
      byte[0] != 10
    { line += byte }
    guard let addresses = try? JSONDecoder().decode(Addresses.self, from: line) else {
      throw Failure("belfry emulator did not start")
    }
    control = addresses.control
    environment = [
      "HTTPS_PROXY": addresses.proxy, "https_proxy": addresses.proxy, "SSL_CERT_FILE": addresses.ca,
      "CURL_CA_BUNDLE": addresses.ca,
    ]
  }

  func stop() {
    process.terminate()
    process.waitUntilExit()
  }

  /// A phone with the app of this bundle id.
  func iPhone(_ bundleID: String) async throws -> Phone {
    try await phone(["pns": "apns", "bundleId": bundleID])
  }

  /// A phone with an app of this Firebase project.
  func android(_ project: String) async throws -> Phone {
    try await phone(["pns": "fcm", "projectId": project])
  }

  private func phone(_ wanted: [String: String]) async throws -> Phone {
    struct Apps: Decodable { let apps: [App] }
    struct App: Decodable { let appId: String, bundleId: String?, projectId: String? }
    struct Devices: Decodable { let devices: [Device] }
    struct Device: Decodable {
      struct Handle: Decodable { let token: String }
      let deviceId: String
      let handle: Handle
    }
    let known: Apps = try await call("GET", "apps")
    var app = known.apps.first {
      $0.bundleId ?? $0.projectId == wanted["bundleId"] ?? wanted["projectId"]
    }
    if app == nil { app = try await call("POST", "apps", wanted) }
    let made: Devices = try await call("POST", "devices", ["appId": app?.appId ?? ""])
    return Phone(emulator: self, id: made.devices[0].deviceId, token: made.devices[0].handle.token)
  }

  /// A call of the control API (docs/protocol/emulator.md).
  func call<Reply: Decodable>(_ method: String, _ path: String, _ body: [String: String]? = nil)
    async throws -> Reply
  {
    var request = URLRequest(url: control.appending(path: "v1/" + path))
    request.httpMethod = method
    if let body {
      request.httpBody = try JSONEncoder().encode(body)
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    }
    let (data, response) = try await URLSession.shared.data(for: request)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else {
      throw Failure("\(method) \(path): \(status) \(String(decoding: data, as: UTF8.self))")
    }
    return try JSONDecoder().decode(Reply.self, from: data)
  }
}

/// A virtual phone.
struct Phone: Sendable {
  let emulator: BelfryEmulator
  let id: String
  let token: String

  /// The payloads that arrived, oldest first, as text.
  func messages() async throws -> [String] {
    struct Reply: Decodable { let notifications: [Notification] }
    struct Notification: Decodable { let payloadBase64: Data }
    let reply: Reply = try await emulator.call("GET", "devices/\(id)/notifications")
    return reply.notifications.map { String(decoding: $0.payloadBase64, as: UTF8.self) }
  }

  /// Waits for a message with this text in it, and returns its payload.
  @discardableResult
  func expect(_ text: String, within seconds: Double = 5) async throws -> String {
    let deadline = Date() + seconds
    while true {
      let arrived = try await messages()
      if let found = arrived.first(where: { $0.contains(text) }) { return found }
      guard Date() < deadline else {
        throw BelfryEmulator.Failure(
          "no message with '\(text)' within \(seconds) s; arrived: \(arrived)")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  /// From now on the push service calls the token dead.
  func uninstall() async throws {
    struct Reply: Decodable { let state: String }
    let _: Reply = try await emulator.call("POST", "devices/\(id)/unregister", [:])
  }
}
