import Cryptography
import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import PushEmulator
import Wire

/// The push services of a development hub: an emulator in this process, or one that runs elsewhere.
struct StandIns: Sendable {
  /// Base URL of the control API.
  let control: String
  /// Base URL of the APNs stand-in (production).
  let apns: String
  /// Base URL of its channel management; `nil` for an older emulator elsewhere.
  let apnsChannels: String?
  /// The URL of the proxy of an emulator in this process, if it has one.
  let proxy: String?
  /// A PEM file with the authority to trust.
  let authorityFile: String
  let authorityPEM: String
  /// Base URLs of the other services' stand-ins by their names in the control API; the HTTP/2 one
  /// for a service that has it.
  let services: [String: String]
  /// The default app's bundle id.
  let topic: String
  /// The hub's credentials for the services.
  let credentials: [PushCredential]
  /// Issues the hub's certificate for HTTPS; with the PEM file of the authority to trust.
  let issuer: (issue: @Sendable (Date) throws -> CertificateIdentity, authorityFile: String)
  /// The emulator to stop; `nil` if it runs elsewhere.
  private let emulator: EmulatorServer?

  static let standardTopic = "com.example.app"

  /// The listeners of an emulator that is not started on free ports.
  static var listeners: [PlannedListener] {
    let control = PlannedListener(
      "the emulator's control API", port: Int(EmulatorOptions().controlPort))
    return [control]
      + EmulatorOptions.onFreePorts.ports.keys.sorted { $0.standardPort < $1.standardPort }.map {
        PlannedListener("the stand-in of \($0.serviceName)", port: Int($0.standardPort))
      }
  }

  /// Starts an emulator.
  ///
  /// - Parameters:
  ///   - directory: The directory that preserves the authority, the apps and the virtual phones
  ///     between runs.
  ///   - onFreePorts: Whether to use free ports in place of 9400, 9443 to 9446 and those of
  ///     `EmulatorListener`.
  ///   - proxy: The proxy to start with it.
  ///   - acceptsAnyCredential: See ``EmulatorOptions/acceptsAnyCredential``.
  ///   - log: Receives lines for the operator.
  static func start(
    in directory: String, onFreePorts: Bool, topic: String, proxy: ProxyOptions? = nil,
    acceptsAnyCredential: Bool = false, log: @escaping @Sendable (String) -> Void
  ) async throws -> StandIns {
    try DescriptorLimit.require()
    var options = onFreePorts ? EmulatorOptions.onFreePorts : EmulatorOptions()
    options.authorityDirectory = directory
    options.proxy = proxy
    options.acceptsAnyCredential = acceptsAnyCredential
    options.stateFile = directory + "/emulator.json"
    options.onProblem = { log("\($0)") }
    let emulator = EmulatorServer(options)
    let addresses: EmulatorAddresses
    do {
      addresses = try await emulator.start()
    } catch {
      throw CommandFailure(
        "the push services' stand-ins cannot start: \(error)", exitCode: .unreachable)
    }
    let app = try emulator.app(bundleID: topic)
    return StandIns(
      control: addresses.control, apns: addresses.apnsProduction,
      apnsChannels: addresses.apnsChannelsProduction, proxy: addresses.proxy,
      authorityFile: addresses.authorityFile ?? "", authorityPEM: addresses.authorityPEM,
      services: Dictionary(
        EmulatorListener.besideAPNs.map { ($0.serviceName, addresses[$0]) }
      ) { http2, _ in http2 },
      topic: app.bundleID,
      credentials: [
        credential(
          p8: app.p8, keyID: app.keyID, teamID: app.teamID, topic: app.bundleID,
          apns: addresses.apnsProduction, sandbox: addresses.apnsSandbox,
          channels: addresses.apnsChannelsProduction)
      ] + (try StandInCredentials.own(emulator)),
      issuer: ({ try emulator.issueForLocalhost(at: $0) }, addresses.authorityFile ?? ""),
      emulator: emulator)
  }

  /// Uses an emulator that runs elsewhere. It is given a signing key of ours, since it does not
  /// reveal the private halves of its own.
  static func join(_ control: String, in directory: String, topic: String) async throws -> StandIns
  {
    let api = try EmulatorControl(control)
    let info = try await api.info()
    let key = try StandInCredentials.kept(directory + "/emulator-key.p8") {
      try P256PrivateKey(pem: $0)
    } make: {
      try P256PrivateKey()
    } pem: {
      try $0.pem()
    }
    let publicPEM = try key.publicKey().pem
    let keyID = String(Hex.encode(Digest.sha256(Array(publicPEM.utf8))).prefix(10).uppercased())
    let keys = [EmulatorControl.NewKey(kid: keyID, publicKeyPem: publicPEM)]
    let app = try await api.app(
      EmulatorControl.Members(pns: "apns", bundleId: topic, keys: keys), adding: .init(keys: keys)
    ) {
      $0.bundleId == topic
    } unless: {
      $0.keys?.contains { $0.kid == keyID } == true
    }
    let pem = try await api.authority()
    let authorityFile = directory + "/emulator-ca.pem"
    // The key of that emulator's authority is not available.
    let own = try OwnAuthority(in: DataDirectory(path: directory), names: [])
    try Data(pem.utf8).write(to: URL(fileURLWithPath: authorityFile), options: .atomic)
    return StandIns(
      control: api.base.absoluteString, apns: info.apns.production,
      apnsChannels: info.apns.channelsProduction, proxy: nil, authorityFile: authorityFile,
      authorityPEM: pem, services: info.services, topic: topic,
      credentials: [
        credential(
          p8: try key.pem(), keyID: keyID, teamID: app.teamId ?? "", topic: topic,
          apns: info.apns.production, sandbox: info.apns.sandbox,
          channels: info.apns.channelsProduction)
      ] + (try await StandInCredentials.joined(api, info, in: directory)),
      issuer: ({ try own.issue(at: $0) }, own.certificateFile),
      emulator: nil)
  }

  private static func credential(
    p8: String, keyID: String, teamID: String, topic: String, apns: String, sandbox: String,
    channels: String?
  ) -> PushCredential {
    var properties = [
      "Token": p8, "KeyId": keyID, "AppId": teamID, "AppName": topic, "Endpoint": apns,
      "OtherEndpoint": sandbox,
    ]
    properties["BroadcastEndpoint"] = channels
    return PushCredential(platform: .apns, properties: properties, modifiedAt: Date())
  }

  func stop() async { await emulator?.stop() }
}
