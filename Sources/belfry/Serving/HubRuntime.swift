import Authentication
import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubServer
import HubStorage
import PushGateways

/// A running hub: store, delivery engine, gateways and, if requested, the listener.
final class HubRuntime: Sendable {
  struct Options: Sendable {
    var data: DataDirectory
    /// The claim on the directory, if the caller already has it.
    var claim: DirectoryClaim?
    var masterKey: String?
    /// The options for a database in a file.
    var storage = SQLiteHubStore.Options()
    /// The address of a PostgreSQL database in place of a file; `nil` uses the one recorded in the
    /// directory.
    var database: String?
    /// The number of slots of a new PostgreSQL database; `nil` for the default.
    var databaseSlots: Int?
    /// The number of seconds without a heartbeat after which others take over this node's work.
    var databaseLease = StoreNode.usualLease
    /// Whether a PostgreSQL database without a hub may be set up for one.
    var mayMake = true
    /// Whether the log warns of a database that can lose accepted data.
    var warnsOfDurability = true
    var address = "127.0.0.1"
    var port: UInt16 = 8080
    /// The options for HTTPS; `nil` for HTTP only.
    var https: HTTPSOptions?
    var publicNames: [String] = []
    var publicScheme: String?
    /// The name of the namespace that the hubs belong to; `nil` takes it from each request's host.
    var namespace: String?
    /// PEM certificates of authorities trusted in addition to the system's.
    var anchorsPEM: [UInt8] = []
    /// Hosts that are permitted in devices' channel URLs, in addition to the vendors' own.
    var channelHosts: [String] = []
    /// Hosts that subscriptions of Web Push may name in addition to ``channelHosts``.
    var webPushHosts = WebPushConfiguration().reach
    /// Hosts that are permitted in credentials, in addition to the vendors' own.
    var serviceHosts: [String] = []
    /// Whether GCM devices are reached through the hub's FCM v1 credential.
    var migratesGCM = false
    /// Whether devices of retired services are refused.
    var refusesRetired = false
    /// The number of connections per credential to a push service with HTTP/1.1; `nil` for each
    /// service's default.
    var pushConnections: Int?
    var compatibility = Compatibility.extended
    /// The maximum number of tags per installation; `nil` for that of ``compatibility``.
    var tagsPerInstallation: Int?
    /// The hosts that imports and exports may fetch from and write to.
    var jobHosts: [String] = []
    /// The directory that must contain the `file:` URIs of imports and exports.
    var jobDirectory: String?
    var bodyLimit = HubAPIConfiguration.defaultMaxBodyBytes
    var connectionLimit = 1000
    /// The maximum number of connections per client address; 0 for a quarter of `connectionLimit`.
    var connectionsPerAddress = 0
    /// The proxies whose statements about the client are trusted.
    var trustedProxies = TrustedProxies()
    var requestTimeout = Duration.seconds(30)
    /// The outcomes that are stored device by device.
    var keepOutcomes = DispatchLimits().keeping
    var retention = StoreMaintenance.Retention()
    /// The operator file, which may not exist.
    var operatorFile: String?
    var signIn = OperatorSignIn.Options()
    /// The OpenID provider for operators, in addition to the operator file's passwords.
    var provider: OpenIDConfiguration?
    /// See ``DispatchLimits/deadHandleShare``.
    var deadHandleShare = DispatchLimits().deadHandleShare
    /// The maximum number of HTTP/2 connections per credential to a push service.
    var http2Connections = PushGatewaysConfiguration().apns.maxConnections
    /// Receives events for the operator.
    var log = HubLog.silent
    /// The port of a separate listener for metrics; `nil` for none.
    var metricsPort: UInt16?
    var metricsAddress = "127.0.0.1"
    var metricsToken: String?
    /// Whether metrics need no authorization: for development.
    var opensMetrics = false
    /// Whether the portal is served.
    var portal = true
    /// The functions that sign in the portal's local user: for development.
    var portalController: (@Sendable (HubService) -> any PortalController)?

    init(data: DataDirectory) { self.data = data }
  }

  let data: DataDirectory
  let service: HubService
  let gateways: PushGatewayDirectory
  /// `http://host:port`, without a trailing slash; `nil` if it does not listen.
  let url: String?
  /// `https://127.0.0.1:port`, or with the host that it listens on; `nil` if it does not serve
  /// HTTPS.
  let httpsURL: String?
  /// The names of the setting `publicNames`.
  private let publicNames: [String]
  /// `http://host:port/metrics`; `nil` without a listener for them.
  let metricsURL: String?
  private let listener: HTTPListener?
  let secure: SecureListener?
  private let metrics: HTTPListener?
  private let health: HubHealth
  private let jobs: JobRunner?
  private let claim: DirectoryClaim?
  /// The keys that open the secrets of the store.
  let keys: MasterKeyRing
  /// The database that this node shares with others; `nil` for a file.
  let shared: PostgresHubStore?
  /// The tasks that remove expired data and warn of expiring credentials while the hub serves.
  private let keeping: [Task<Void, Never>]

  private init(
    data: DataDirectory, service: HubService, gateways: PushGatewayDirectory,
    listener: HTTPListener?, secure: SecureListener?, metrics: HTTPListener?, health: HubHealth,
    jobs: JobRunner?, claim: DirectoryClaim?, opened: OpenedStore, publicNames: [String],
    keeping: [Task<Void, Never>]
  ) {
    self.publicNames = publicNames
    keys = opened.keys
    shared = opened.shared
    self.jobs = jobs
    self.keeping = keeping
    self.claim = claim
    self.data = data
    self.service = service
    self.gateways = gateways
    self.listener = listener
    self.secure = secure
    self.metrics = metrics
    self.health = health
    url = listener?.url
    httpsURL = secure?.listener.url
    metricsURL = metrics.map { $0.url + "/metrics" }
  }

  /// The URLs under which other machines reach a listener on every interface.
  var otherURLs: [String] {
    [listener, secure?.listener].compactMap(\.self).flatMap { listener in
      guard listener.isEverywhere else { return [] as [String] }
      return NetworkInterface.addresses(withIPv6: listener.host == "::").map(listener.url(at:))
    }
  }

  /// The URL for a browser: with the name in the certificate, if a setting names one.
  var namedURL: String? {
    guard let httpsURL else { return url }
    guard let name = publicNames.first, var parts = URLComponents(string: httpsURL) else {
      return httpsURL
    }
    parts.host = name
    return parts.string ?? httpsURL
  }

  /// Opens the store to read or change it, without serving or delivering.
  static func open(_ options: Options) async throws -> HubRuntime {
    try await make(options, listening: false)
  }

  /// Opens the store, resumes pending deliveries, and listens.
  static func start(_ options: Options) async throws -> HubRuntime {
    // Before opening the store, whose error would only say that it cannot open a file.
    try DescriptorLimit.require()
    return try await make(options, listening: true)
  }

  private static func make(_ options: Options, listening: Bool) async throws -> HubRuntime {
    let claim = listening ? try options.directoryClaim() : nil
    // The last server's port may belong to another program by now, which must not receive keys.
    if claim != nil { options.data.withdrawAddress() }
    // A server of an older version may be running, which could not read a migrated store.
    let opened = try await OpenedStore.open(
      options, mayMigrate: listening || !options.data.isServed)
    let store = opened.store
    if let upgrade = opened.upgrade {
      options.log(
        .info, "store.upgraded",
        "the database was brought from schema version \(upgrade.from) to \(upgrade.to)"
          + (upgrade.copy.map { "; as it was before it is kept in \($0)" } ?? ""))
    }
    var found: [HealthReport.Finding] = []
    if let discarded = opened.discarded {
      options.log(.error, "store.discarded", "\(discarded)")
      found.append(.init(code: "store-discarded", text: "\(discarded)"))
    }
    do {
      if listening { try await options.data.refuseMoved(opened.shared) }
      if listening, let shared = opened.shared {
        try await shared.join(
          as: StoreNode(
            name: ProcessInfo.processInfo.hostName, version: BelfryVersion.current,
            lease: options.databaseLease))
        for warning in try await shared.warnings() {
          if options.warnsOfDurability {
            options.log(
              .warning, "database.settings", warning.text, [("code", .text(warning.code))])
          }
          found.append(.init(code: warning.code, text: warning.text))
        }
      }
      var services = PushGatewaysConfiguration()
      services.extraAnchorsPEM = options.anchorsPEM
      services.allowedHosts = options.channelHosts
      services.webPush.reach = options.webPushHosts
      services.serviceHosts = options.serviceHosts
      services.connections = options.pushConnections
      services.apns.maxConnections = options.http2Connections
      var limits = DispatchLimits()
      limits.keeping = options.keepOutcomes
      limits.deadHandleShare = options.deadHandleShare
      var hubLimits = options.compatibility.limits
      hubLimits.refusesRetired = options.refusesRetired
      hubLimits.keptText = options.retention.keptText
      if let limit = options.tagsPerInstallation { hubLimits.tagsPerInstallation = limit }
      let signIn =
        listening ? try options.operatorSignIn(store, AttemptLimiter(in: opened.shared)) : nil
      let hub = HubAssembly(
        store: store, machine: .system, random: .system, limits: hubLimits, dispatch: limits,
        migratesGCM: options.migratesGCM, report: { options.log($0) }, found: found,
        looking: { [log = options.log] in
          let lock = opened.shared?.lockWarning.map {
            HealthReport.Finding(code: $0.code, text: $0.text)
          }
          return [log.state.finding, await signIn?.finding(), lock].compactMap(\.self)
        },
        gateways: { PushGatewayDirectory(services, nodes: $0, clock: $1, random: $2) })
      var service = hub.service
      _ = try await service.policies.root()
      var listener: HTTPListener?
      var secure: SecureListener?
      var metrics: HTTPListener?
      var jobs: JobRunner?
      if listening {
        // Any problem with the certificate is detected before a socket is opened.
        let certificates = try options.https.map {
          try CertificateStore($0.source, at: Date(), log: options.log.lines(.info, "certificate"))
        }
        let runner = JobRunner(
          service: service, configuration: options.jobs,
          report: options.log.lines(.info, "job"))
        service = service.running(jobs: runner)
        jobs = runner
        let observer = options.observer(service, hub.health, opened.shared)
        var limited = options
        limited.limitConnections(to: DescriptorLimit.raise())
        let connections = HTTPConnections()
        let journal = SignInJournal(service: service, log: options.log)
        listener = try listen(
          limited, connections: connections, service: service, observer: observer, signIn: signIn,
          journal: journal)
        if let certificates, let https = options.https {
          let listener = try listen(
            limited, connections: connections, port: https.port, tls: certificates.first,
            service: service, observer: observer, signIn: signIn, journal: journal)
          secure = SecureListener(
            listener, certificates: certificates, log: options.log.lines(.info, "certificate"))
        }
        metrics = try options.metricsListener(observer.metrics)
        try await hub.dispatcher.start()
        try await runner.start()
        if let url = secure?.listener.url ?? listener?.url {
          try await opened.shared?.publish(address: url)
        }
      }
      let runtime = HubRuntime(
        data: options.data, service: service, gateways: hub.gateways, listener: listener,
        secure: secure, metrics: metrics, health: hub.health, jobs: jobs, claim: claim,
        opened: opened, publicNames: options.publicNames,
        keeping: listening ? options.keeping(opened, hub.health, jobs) : [])
      if let url = runtime.url { options.publish(url) }
      return runtime
    } catch {
      try? await store.close()
      throw error
    }
  }

  private static func listen(
    _ options: Options, connections: HTTPConnections, port: UInt16? = nil, tls: TLSIdentity? = nil,
    service: HubService,
    observer: HubObserver, signIn: OperatorSignIn?, journal: SignInJournal
  ) throws -> HTTPListener {
    var api = HubAPIConfiguration()
    api.publicHosts = options.publicNames
    api.publicScheme = options.publicScheme
    api.namespace = options.namespace
    api.maxBodyBytes = options.bodyLimit
    var configuration = HubAPIConfiguration.listener
    configuration.host = options.address
    configuration.port = port ?? options.port
    configuration.tls = tls
    configuration.maxBodyBytes = options.bodyLimit
    configuration.connections = connections
    configuration.maxConnections = options.connectionLimit
    configuration.maxConnectionsPerAddress =
      options.connectionsPerAddress > 0
      ? options.connectionsPerAddress : max(1, options.connectionLimit / 4)
    configuration.limitsLoopback = false
    configuration.trustedProxies = options.trustedProxies
    configuration.requestReadTimeout = options.requestTimeout
    var handler: any HTTPHandler = HubAPI(
      service: service, configuration: api, observer: observer, signIn: signIn)
    handler = SignInPages(
      signIn, service: service, journal: journal, hasLocalUser: options.portalController != nil,
      next: handler)
    if options.portal {
      handler = Portal(controller: options.portalController?(service), next: handler)
    }
    do {
      return try HTTPListener(
        configuration, handler: ProxiedHandler(options.trustedProxies, next: handler))
    } catch {
      throw CommandFailure(error.description, exitCode: .unreachable)
    }
  }

  /// Stops accepting, lets requests and pushes in flight finish within the limit, and writes all
  /// state.
  func stop(within limit: Duration) async {
    let end = ContinuousClock.now + limit
    func rest(_ most: Duration) -> Duration {
      max(.zero, min(most, ContinuousClock.now.duration(to: end)))
    }
    health.beginStopping()
    if let listener {
      if claim != nil { data.withdrawAddress() }
      ShutdownSignal.step("requests in flight")
      async let secureStop: Void? = secure?.stop(within: rest(.seconds(5)))
      await listener.stop(within: rest(.seconds(5)))
      _ = await secureStop
      ShutdownSignal.step("imports and exports")
      await jobs?.stop()
      ShutdownSignal.step("pushes in flight")
      await service.dispatcher.stop(within: rest(limit))
    }
    ShutdownSignal.step("the listener for metrics")
    await metrics?.stop(within: .seconds(1))
    for task in keeping { task.cancel() }
    ShutdownSignal.step("connections to push services")
    await gateways.close()
    ShutdownSignal.step("the store")
    try? await service.store.close()
  }
}

extension HubRuntime.Options {
  /// Limits client connections to the open files that the process may have.
  fileprivate mutating func limitConnections(to descriptors: Int) {
    let most = DescriptorLimit.connections(within: descriptors)
    guard most < connectionLimit else { return }
    log.lines(.warning, "server")(
      "this process may have \(descriptors) files open, room for \(most) connections and not for "
        + "the \(connectionLimit) of connectionLimit: \(DescriptorLimit.advice)")
    connectionLimit = most
  }

  /// Claims the directory. Two servers on one file would send everything twice. Nodes on one
  /// PostgreSQL database share the work, but not a directory, whose address and working files
  /// belong to one.
  fileprivate func directoryClaim() throws -> DirectoryClaim {
    try claim ?? data.claim(for: .serving)
  }

  /// Records the hub's address. A full disk must not keep the hub from serving.
  fileprivate func publish(_ url: String) {
    do {
      try data.publish(address: url)
    } catch {
      log(
        .warning, "server.address",
        "the address cannot be noted in \(data.path) (\(Configuration.reason(error))): commands find "
          + "this server by --connection-string only")
    }
  }

  /// The sign-in of operators at the portal; `nil` if the portal is not served.
  fileprivate func operatorSignIn(
    _ store: any HubStore, _ limiter: AttemptLimiter
  ) throws -> OperatorSignIn? {
    guard portal else { return nil }
    do {
      let file = try UserFile(
        path: operatorFile ?? data.operators, form: .operators,
        report: { [log] fault in
          if let fault {
            log(.error, "operators.file", "\(fault). \(OperatorSignIn.whatCounts)")
          } else {
            log(.info, "operators.file", "the operator file can be read again")
          }
        })
      let provider = provider.map {
        OpenIDProvider(
          $0,
          transport: ClientTransport(
            anchorsPEM: anchorsPEM, largestBody: 1 << 20, totalTimeout: .seconds(10)),
          now: store.clock.now)
      }
      return try OperatorSignIn(
        operators: file, provider: provider, store: store, clock: store.clock, options: signIn,
        limiter: limiter)
    } catch let fault as UserFile.Fault {
      throw CommandFailure("\(fault)", exitCode: .usage)
    }
  }

  /// The locations that jobs may read and write.
  fileprivate var jobs: JobConfiguration {
    var jobs = JobConfiguration(workspace: URL(fileURLWithPath: data.path + "/jobs"))
    jobs.allowedHosts = jobHosts
    jobs.extraAnchorsPEM = anchorsPEM
    jobs.directory = jobDirectory.map { URL(fileURLWithPath: $0) }
    jobs.namespace = namespace ?? jobs.namespace
    return jobs
  }
}

/// The addresses under which others reach this machine.
enum NetworkInterface {
  /// The numeric addresses, without loopback and link-local ones, in the system's order.
  static func addresses(withIPv6: Bool) -> [String] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var found: [String] = []
    for entry in sequence(first: list, next: { $0?.pointee.ifa_next }) {
      guard let entry, let address = entry.pointee.ifa_addr,
        entry.pointee.ifa_flags & UInt32(IFF_UP) != 0,
        entry.pointee.ifa_flags & UInt32(IFF_LOOPBACK) == 0
      else { continue }
      let isIPv4 = Int32(address.pointee.sa_family) == AF_INET
      guard isIPv4 || withIPv6 && Int32(address.pointee.sa_family) == AF_INET6 else { continue }
      let length = isIPv4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      guard
        getnameinfo(
          address, socklen_t(length), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      else { continue }
      let name = String(
        decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      if !name.hasPrefix("fe80:"), !name.hasPrefix("169.254."), !found.contains(name) {
        found.append(name)
      }
    }
    return found
  }
}

extension HTTPListener {
  var isEverywhere: Bool { ["0.0.0.0", "::"].contains(host) }

  /// The URL without a trailing slash. A listener on every interface is addressed by the loopback
  /// address, since a name may not resolve.
  var url: String { url(at: isEverywhere ? "127.0.0.1" : host) }

  func url(at host: String) -> String {
    "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }
}
