import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing
import Wire

@testable import PushGateways

/// A running emulator, and what gateways need to use it in place of the services.
struct StandInStage: Sendable {
  static let start: Int64 = 1_700_000_000

  let emulator: EmulatorServer
  let addresses: EmulatorAddresses
  let configuration: PushGatewaysConfiguration
  let clock = ManualClock(now: Date(timeIntervalSince1970: TimeInterval(start)))

  /// - Parameter audiences: Further origins for which the Web Push stand-in accepts tokens.
  static func run(
    audiences: [String] = [], _ body: (StandInStage) async throws -> Void
  ) async throws {
    var options = EmulatorOptions.onFreePorts
    options.webPush.audiences = audiences
    options.manualClock = start * 1000
    let emulator = EmulatorServer(options)
    let addresses = try await emulator.start()
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    configuration.allowedHosts = ["localhost", "127.0.0.1"]
    let stage = StandInStage(
      emulator: emulator, addresses: addresses, configuration: configuration)
    do {
      try await body(stage)
    } catch {
      await emulator.stop()
      throw error
    }
    await emulator.stop()
  }

  /// Calls the control API.
  @discardableResult
  func ask(_ method: String, _ target: String, _ body: String = "") async throws -> JSONValue {
    let reply = try await emulator.control(method, target, body: body)
    try #require((200..<300).contains(reply.status), "\(method) \(target): \(reply.status)")
    return reply.body.isEmpty ? .null : try JSONValue.parse(reply.body)
  }

  /// - Returns: The devices' ids and handles.
  func devices(
    app: String, count: Int, more: String = ""
  ) async throws -> [(id: String, handle: JSONValue)] {
    let answer = try await ask(
      "POST", "/v1/devices", #"{"appId":"\#(app)","count":\#(count)\#(more)}"#)
    guard case .array(let devices)? = answer["devices"] else { return [] }
    return devices.map { ($0["deviceId"]?.scalarText ?? "", $0["handle"] ?? .null) }
  }

  func notifications(_ device: String) async throws -> [JSONValue] {
    guard
      case .array(let list)? = try await ask("GET", "/v1/devices/\(device)/notifications")[
        "notifications"]
    else { return [] }
    return list
  }

  func fault(_ service: String, _ action: String, when: String = "{}") async throws {
    try await ask(
      "POST", "/v1/faults", #"{"pns":"\#(service)","when":\#(when),"action":\#(action)}"#)
  }
}
