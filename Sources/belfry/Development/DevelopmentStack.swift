import Foundation
import HTTPClient
import HubCore
import HubServer
import HubStorage
import NotificationHubs
import PushEmulator
import PushGateways
import SecurePushBackend

/// A hub and its push services on one machine, as run by `belfry up` and `belfry demo`.
final class DevelopmentStack: Sendable {
  struct Options: Sendable {
    /// The data directory; `nil` for a temporary one, deleted when the stack stops.
    var data: String?
    /// The port; 0 picks free ports for everything.
    var port = 8080
    /// The HTTPS port; 0 picks a free one, as does ``port`` 0.
    var httpsPort = 8443
    var hub = "demo"
    var topic = StandIns.standardTopic
    /// The app backend's port; 0 picks a free one, as does ``port`` 0.
    var backendPort = 8090
    /// The control URL of a running emulator to use.
    var emulator: String?
    /// The proxy of an emulator that is started here.
    var proxy: ProxyOptions?
    /// See ``EmulatorOptions/acceptsAnyCredential``.
    var acceptsAnyCredential = false
    /// Control URLs of emulators that may run here, to identify the one that another node uses.
    var otherEmulators: [String] = []
    var compatibility = Compatibility.extended
    var masterKey: String?
    /// The address of a PostgreSQL database; several stacks on one database form one hub.
    var database: String?
    /// See ``HubRuntime/Options/databaseLease``.
    var databaseLease = StoreNode.usualLease
    var log: @Sendable (String) -> Void = { _ in }
    /// Receives the hub's events.
    var hubLog = HubLog.silent
  }

  /// The addresses printed when everything is running.
  struct Addresses: Encodable, Sendable {
    struct Hub: Encodable, Sendable {
      struct ConnectionStrings: Encodable, Sendable {
        let listen: String
        let full: String
      }
      let name: String
      /// The base of `/{hub}/installations/…`.
      let url: String
      let connectionStrings: ConnectionStrings
      let namespaceConnectionString: String
      /// The URL over TLS, with a certificate for `localhost`, `127.0.0.1` and `::1`.
      let httpsUrl: String
      /// In the format of Azure's clients: `Endpoint=sb://…`, which they turn into `https`.
      let httpsConnectionStrings: ConnectionStrings
      let httpsNamespaceConnectionString: String
      /// A PEM file with the authority to trust for ``httpsUrl``.
      let ca: String
    }
    struct Backend: Encodable, Sendable {
      /// The base of `/api/…`.
      let url: String
    }
    let hub: Hub
    let emulator: StandInAddresses
    let backend: Backend
    /// The portal's URL, with the key by which it recognizes the browser.
    let portal: String
    /// The URL of the portal's page that subscribes a browser, with the same key.
    let browserPage: String
    let data: String
  }

  let addresses: Addresses
  let runtime: HubRuntime
  private let backend: BackendRuntime
  private let standIns: StandIns
  private let workspace: Workspace

  private init(
    addresses: Addresses, runtime: HubRuntime, backend: BackendRuntime, standIns: StandIns,
    workspace: Workspace
  ) {
    self.addresses = addresses
    self.runtime = runtime
    self.backend = backend
    self.standIns = standIns
    self.workspace = workspace
  }

  /// A publicly known key, for development databases.
  private static let openKey = Data("belfry up --database: no secret".utf8 + [0])
    .base64EncodedString()

  static func start(_ options: Options) async throws -> DevelopmentStack {
    let workspace = try Workspace(options.data)
    let standIns: StandIns
    do {
      if let control = options.emulator {
        standIns = try await .join(control, in: workspace.data.path, topic: options.topic)
      } else {
        standIns = try await .start(
          in: workspace.data.path, onFreePorts: options.port == 0, topic: options.topic,
          proxy: options.proxy, acceptsAnyCredential: options.acceptsAnyCredential,
          log: options.log)
      }
    } catch {
      workspace.remove()
      throw error
    }
    do {
      var hub = HubRuntime.Options(data: workspace.data)
      hub.claim = workspace.claim
      hub.port = UInt16(clamping: options.port)
      hub.https = HTTPSOptions(
        port: options.port == 0 ? 0 : UInt16(clamping: options.httpsPort),
        source: .issued(standIns.issuer.issue))
      hub.database = options.database
      hub.databaseLease = options.databaseLease
      hub.masterKey = options.masterKey
      if options.database != nil, options.data == nil, options.masterKey == nil {
        // Nodes started for a trial share a key without configuration.
        try OutputFile.write(Self.openKey, to: workspace.data.masterKeyFile)
      }
      hub.compatibility = options.compatibility
      // Programs on this machine can reach its other services anyway.
      hub.jobHosts = ["127.0.0.1", "localhost", "[::1]"]
      hub.anchorsPEM = Array(standIns.authorityPEM.utf8)
      hub.channelHosts = ["localhost", "127.0.0.1"]
      hub.serviceHosts = ["localhost", "127.0.0.1"]
      hub.log = options.hubLog
      hub.opensMetrics = true
      hub.warnsOfDurability = false
      let control = try EmulatorControl(standIns.control)
      hub.portalController = {
        DevelopmentPortalController(service: $0, hub: options.hub, control: control)
      }
      let runtime = try await HubRuntime.start(hub)
      do {
        let hub = try await Self.prepare(runtime, standIns, options)
        let backend = try await Self.startBackend(hub, in: workspace.data, options)
        let portal = hub.url + Portal.path
        let root = try await runtime.service.policies.root()
        let key = "#key=" + (try DevelopmentPortalController.key(root))
        return DevelopmentStack(
          addresses: Addresses(
            hub: hub, emulator: StandInAddresses(standIns), backend: .init(url: backend.url),
            portal: portal + key, browserPage: "\(portal)hub/\(hub.name)/browser\(key)",
            data: runtime.data.path),
          runtime: runtime, backend: backend, standIns: standIns, workspace: workspace)
      } catch {
        await runtime.stop(within: .zero)
        throw error
      }
    } catch {
      await standIns.stop()
      workspace.remove()
      throw error
    }
  }

  /// Creates the hub if it is missing, and gives it the stand-ins' credentials, whose ports may
  /// have changed since the last run.
  private static func prepare(
    _ runtime: HubRuntime, _ standIns: StandIns, _ options: Options
  ) async throws -> Addresses.Hub {
    let service = runtime.service
    if try await service.store.hub(named: options.hub) == nil {
      _ = try await service.createHub(named: options.hub)
    }
    let hub = try await service.hub(named: options.hub)
    if options.emulator == nil, runtime.shared != nil {
      let known = try await service.credentials.list(hub: hub.name)
      try await refuseOther(than: standIns, among: known, options)
    }
    for credential in standIns.credentials {
      try await service.credentials.set(credential, hub: hub.name, checkedBy: runtime.gateways)
    }
    let url = runtime.url ?? ""
    let httpsURL = runtime.httpsURL ?? ""
    let listen = try await service.policies.get(
      named: AccessPolicy.defaultListenName, hub: hub.name)
    let full = try await service.policies.get(named: AccessPolicy.defaultFullName, hub: hub.name)
    let root = try await service.policies.root()
    return Addresses.Hub(
      name: hub.name, url: url,
      connectionStrings: .init(
        listen: try connectionString(listen, url), full: try connectionString(full, url)),
      namespaceConnectionString: try connectionString(root, url),
      httpsUrl: httpsURL,
      httpsConnectionStrings: .init(
        listen: try secureConnectionString(listen, httpsURL),
        full: try secureConnectionString(full, httpsURL)),
      httpsNamespaceConnectionString: try secureConnectionString(root, httpsURL),
      ca: standIns.issuer.authorityFile)
  }

  /// Refuses to redirect the hub's credentials away from the working emulator of another node.
  private static func refuseOther(
    than own: StandIns, among credentials: [PushCredential], _ options: Options
  ) async throws {
    guard let endpoint = credentials.first(where: { $0.platform == .apns })?.properties["Endpoint"],
      endpoint != own.apns, let url = URL(string: endpoint)
    else { return }
    do {
      _ = try await ClientTransport.shared.send(
        TransportRequest(method: "GET", url: url, headers: [:], body: nil))
    } catch let failure as HTTPFailure where failure.kind == .tls {
      // An emulator is there, with an authority that only its own hubs trust.
    } catch { return }
    var control: String?
    for other in ["http://127.0.0.1:9400"] + options.otherEmulators where control == nil {
      if try await EmulatorControl(other).answers(at: endpoint) { control = other }
    }
    throw CommandFailure(
      "the hub '\(options.hub)' of this database pushes to another emulator, of another node: give "
        + "--emulator \(control ?? "URL"), so that this one pushes there, too"
        + (control == nil ? " (URL: its control address, which it printed)" : ""), exitCode: .usage)
  }

  /// Starts the tutorials' backend with the tutorials' sign-in. It gets only the hub's connection
  /// string.
  private static func startBackend(
    _ hub: Addresses.Hub, in data: DataDirectory, _ options: Options
  ) async throws -> BackendRuntime {
    var signIn = SignIn(passwords: DemoUsers())
    signIn.everyoneSends = true
    var backend = BackendRuntime.Options(directory: data, signIn: signIn)
    backend.port = options.port == 0 ? 0 : UInt16(clamping: options.backendPort)
    backend.log = options.log
    return try await BackendRuntime.start(
      backend,
      hub: NotificationHubClient(
        connectionString: try ConnectionString(hub.connectionStrings.full), hub: hub.name,
        transport: ClientTransport.shared))
  }

  private static func connectionString(_ policy: AccessPolicy, _ url: String) throws -> String {
    guard let endpoint = ServiceEndpoint(parsing: url) else {
      throw CommandFailure("'\(url)' is not a valid address", exitCode: .defect)
    }
    return policy.connectionString(endpoint: endpoint).text
  }

  /// The connection string with the scheme `sb` where our own SDK would assume plain HTTP (a
  /// loopback address with a port), because several of Azure's clients cut off the first letters
  /// whatever they are (docs/protocol/sas.md, section 1).
  private static func secureConnectionString(
    _ policy: AccessPolicy, _ url: String
  ) throws -> String {
    try connectionString(policy, url).replacing("Endpoint=https://", with: "Endpoint=sb://")
  }

  func stop(within limit: Duration) async {
    ShutdownSignal.step("the app backend")
    await backend.stop(within: min(limit, .seconds(2)))
    await runtime.stop(within: limit)
    ShutdownSignal.step("the push services' stand-ins")
    await standIns.stop()
    workspace.remove()
  }
}

/// The addresses printed by `belfry emulator`, and by `belfry up` for its emulator.
struct StandInAddresses: Encodable, Sendable {
  let control: String
  let apns: String
  /// The URL of APNs' channel management.
  let apnsChannels: String?
  /// The other services by their names in the control API.
  let services: [String: String]
  /// The URL of the proxy, if there is one.
  let proxy: String?
  /// A PEM file with the authority to trust.
  let ca: String
  let topic: String

  init(_ standIns: StandIns) {
    control = standIns.control
    apns = standIns.apns
    apnsChannels = standIns.apnsChannels
    services = standIns.services
    proxy = standIns.proxy
    ca = standIns.authorityFile
    topic = standIns.topic
  }
}

/// The directory of a development stack: the given one, or a temporary one that is deleted with it.
struct Workspace: Sendable {
  let data: DataDirectory
  /// The claim on a temporary directory from the moment of its creation, which shows whether it is
  /// in use.
  let claim: DirectoryClaim?

  /// - Parameter path: The directory; `nil` creates a temporary one, and removes those left behind
  ///   by other processes, since they contain keys.
  init(_ path: String?) throws {
    if let path {
      data = try .make(at: path)
      claim = nil
    } else {
      let folder = FileManager.default.temporaryDirectory
      Self.removeAbandoned(in: folder.path)
      let name = Self.prefix + UUID().uuidString.lowercased()
      data = try .make(at: folder.appending(path: name).path)
      claim = try data.claim(for: .serving)
    }
  }

  func remove() {
    if claim != nil { try? FileManager.default.removeItem(atPath: data.path) }
  }

  // MARK: What others have left

  private static let prefix = "belfry-"

  /// Removes the directories with a name as given by ``init(_:)`` that belong to this user and
  /// contain a lock without holder.
  static func removeAbandoned(in folder: String) {
    let files = FileManager.default
    for name in (try? files.contentsOfDirectory(atPath: folder)) ?? [] where isOwn(name) {
      let path = folder + "/" + name
      let lock = path + "/lock"
      // Neither follows a symbolic link.
      guard let directory = try? files.attributesOfItem(atPath: path),
        directory[.type] as? FileAttributeType == .typeDirectory,
        (directory[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid(),
        let file = try? files.attributesOfItem(atPath: lock),
        file[.type] as? FileAttributeType == .typeRegular,
        // There is a moment between its creation and its claim.
        let made = file[.modificationDate] as? Date, made.timeIntervalSinceNow < -5,
        let claim = try? DirectoryClaim(file: lock)
      else { continue }
      withExtendedLifetime(claim) { try? files.removeItem(atPath: path) }
    }
  }

  static func isOwn(_ name: String) -> Bool {
    let id = name.dropFirst(prefix.count)
    return name.hasPrefix(prefix) && id == id.lowercased() && UUID(uuidString: String(id)) != nil
  }
}
