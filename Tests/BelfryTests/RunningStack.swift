import Foundation
import HubTesting
import NotificationHubs

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What `belfry up --json` and `belfry emulator --json` print.
struct UpLine: Decodable, Sendable {
  struct Hub: Decodable, Sendable {
    struct ConnectionStrings: Decodable, Sendable {
      let listen: String
      let full: String
    }
    let name: String
    let url: String
    let connectionStrings: ConnectionStrings
    let namespaceConnectionString: String
    let httpsUrl: String
    let httpsConnectionStrings: ConnectionStrings
    let httpsNamespaceConnectionString: String
    let ca: String
  }
  let hub: Hub
  let emulator: EmulatorLine
  let data: String
}

struct EmulatorLine: Decodable, Sendable {
  let control: String
  let apns: String
  let ca: String
  let topic: String
}

extension BelfryProcess {
  /// Starts `belfry up` on free ports and waits until it says that it is ready.
  static func up(_ words: [String] = []) async throws -> (BelfryProcess, UpLine) {
    let process = try BelfryProcess(["up", "--json", "--port", "0"] + words)
    let line = try await process.line { $0.hasPrefix("{") }
    return (process, try JSONDecoder().decode(UpLine.self, from: Data(line.utf8)))
  }

  /// Asks for an orderly end, and waits for it.
  func end() async throws -> Int32 {
    signal(SIGTERM)
    return try await exitCode()
  }
}

extension UpLine {
  func client(_ connection: KeyPath<Hub.ConnectionStrings, String> = \.full) throws
    -> NotificationHubClient
  {
    NotificationHubClient(
      connectionString: try ConnectionString(hub.connectionStrings[keyPath: connection]),
      hub: hub.name)
  }
}

/// The emulator's control API as a test uses it.
struct Control: Sendable {
  let base: String

  func call(_ method: String, _ path: String, _ body: String? = nil) async throws -> JSONObject {
    guard let url = URL(string: base + path) else { throw ProcessFault("no URL: \(path)") }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    let (data, response) = try await URLSession.shared.data(for: request)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else {
      throw ProcessFault("\(method) \(path): \(status) \(String(decoding: data, as: UTF8.self))")
    }
    return data.isEmpty
      ? JSONObject([:]) : JSONObject(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  /// Makes phones that are online whether or not anybody reads their events.
  func phones(_ count: Int) async throws -> [(id: String, token: String)] {
    let apps = try await call("GET", "/v1/apps")
    let app = apps.list("apps").first?.text("appId") ?? ""
    let made = try await call("POST", "/v1/devices", #"{"appId":"\#(app)","count":\#(count)}"#)
    return made.list("devices").map { device in
      (device.text("deviceId"), device.object("handle").text("token"))
    }
  }

  /// The ids of the notifications that a phone has got, in order.
  func delivered(to device: String) async throws -> [String] {
    try await call("GET", "/v1/devices/\(device)/notifications").list("notifications")
      .map { $0.text("id") }
  }
}

/// Just enough of JSON for asking a reply.
struct JSONObject {
  private let members: [String: Any]
  init(_ members: [String: Any]?) { self.members = members ?? [:] }
  func text(_ name: String) -> String { members[name] as? String ?? "" }
  func number(_ name: String) -> Int { members[name] as? Int ?? 0 }
  func object(_ name: String) -> JSONObject { JSONObject(members[name] as? [String: Any]) }
  func list(_ name: String) -> [JSONObject] {
    (members[name] as? [[String: Any]] ?? []).map { JSONObject($0) }
  }
}

/// A directory that goes with the value.
final class Scratch: Sendable {
  private let directory: TemporaryDirectory
  var path: String { directory.url.path }

  init() throws { directory = try TemporaryDirectory() }

  deinit { directory.remove() }

  /// Writes a file and returns its path.
  func file(_ name: String, _ text: String) throws -> String {
    let file = path + "/" + name
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    return file
  }
}

/// Runs work for each element, several at a time.
func concurrently<Element: Sendable>(
  _ elements: [Element], width: Int = 32, _ work: @escaping @Sendable (Element) async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: Void.self) { group in
    var rest = elements[...]
    for element in rest.prefix(width) { group.addTask { try await work(element) } }
    rest = rest.dropFirst(width)
    while try await group.next() != nil {
      if let element = rest.popFirst() { group.addTask { try await work(element) } }
    }
  }
}
