import Authentication
import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubServer
import HubStorage
import PushGateways

/// A running hub: store, delivery engine, gateways and, when asked for, the listener.
final class HubRuntime: Sendable {
  struct Options: Sendable {
    var data: DataDirectory
    /// Of that directory, where somebody has it already.
    var claim: DirectoryClaim?
    var masterKey: String?
    /// How a database in a file is opened.
    var storage = SQLiteHubStore.Options()
    /// The address of a PostgreSQL database in place of a file; `nil` takes what the directory
    /// knows.
    var database: String?
    /// Of a new PostgreSQL database; `nil` for the usual number.
    var databaseSlots: Int?
    /// After so many seconds without a heartbeat others take this node's work.
    var databaseLease = StoreNode.usualLease
    /// A PostgreSQL database without a hub is made one of a hub.
    var mayMake = true
    /// Whether the log warns of a database that can lose what was accepted.
    var warnsOfDurability = true
    var address = "127.0.0.1"
    var port: UInt16 = 8080
    /// `nil`: HTTP only.
    var https: HTTPSOptions?
    var publicNames: [String] = []
    var publicScheme: String?
    /// The name of the namespace that the hubs belong to; `nil` takes it from each request's host.
    var namespace: String?
    /// PEM of authorities trusted beside the system's.
    var anchorsPEM: [UInt8] = []
    /// Hosts that devices' channel addresses may name beside the vendors' own.
    var channelHosts: [String] = []
    /// Hosts that credentials may name beside the vendors' own.
    var serviceHosts: [String] = []
    /// Devices of GCM are reached through the hub's FCM v1 credential.
    var migratesGCM = false
    /// Devices of services that have ended are refused.
    var refusesRetired = false
    /// Of one credential to a push service with HTTP/1.1; `nil` for each one's own number.
    var pushConnections: Int?
    var compatibility = Compatibility.extended
    /// `nil` is what ``compatibility`` says.
    var tagsPerInstallation: Int?
    /// The hosts that imports and exports may fetch from and write to.
    var jobHosts: [String] = []
    /// The directory in which the `file:` URIs of imports and exports must lie.
    var jobDirectory: String?
    var bodyLimit = HubAPIConfiguration.maxBodyBytes
    var connectionLimit = 1000
    /// 0 is a quarter of `connectionLimit`.
    var connectionsPerAddress = 0
    /// Who may say for whom they ask.
    var trustedProxies = TrustedProxies()
    var requestTimeout = Duration.seconds(30)
    /// Which outcomes are kept device by device, and how long.
    var keepOutcomes = DispatchLimits().keeping
    var outcomeRetention = OutcomeRetention()
    /// How long notifications are kept after their end, in seconds; `nil` forever.
    var notificationRetention: TimeInterval? = 30 * 86_400
    var activityRetention = ActivityRetention()
    /// The operator file; need not be there.
    var operatorFile: String?
    var signIn = OperatorSignIn.Options()
    /// Where operators may sign in beside the operator file's passwords.
    var provider: OpenIDConfiguration?
    /// See ``DispatchLimits/deadHandleShare``.
    var deadHandleShare = DispatchLimits().deadHandleShare
    /// Most HTTP/2 connections to a push service under one credential.
    var http2Connections = PushGatewaysConfiguration().apns.maxConnections
    /// Hears of what an operator should know.
    var log = HubLog.silent
    /// `nil`: no listener of its own.
    var metricsPort: UInt16?
    var metricsAddress = "127.0.0.1"
    var metricsToken: String?
    /// Anyone who reaches the hub may read its metrics: for development.
    var opensMetrics = false
    /// Serves the page with which a browser subscribes, and answers it: for development.
    var browserPage: (@Sendable (HubService) -> any BrowserPageDesk)?
    /// Serves the portal.
    var portal = true
    /// Signs the portal's local user in: for development.
    var portalDesk: (@Sendable (HubService) -> any PortalDesk)?

    init(data: DataDirectory) { self.data = data }
  }

  let data: DataDirectory
  let service: HubService
  let gateways: PushGatewayDirectory
  /// `http://host:port`, without a slash at the end; `nil` when it does not listen.
  let url: String?
  /// `https://127.0.0.1:port`, or the host it listens on; `nil` when it does not serve HTTPS.
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
  /// What opens the secrets of the store.
  let keys: MasterKeyRing
  /// The database that this node shares with others; `nil` for a file.
  let shared: PostgresHubStore?
  /// Clears away what has expired, and warns of credentials that will, as long as the hub serves.
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

  /// Where a listener on every interface is reached from other machines.
  var otherURLs: [String] {
    [listener, secure?.listener].compactMap(\.self).flatMap { listener in
      guard listener.isEverywhere else { return [] as [String] }
      return NetworkInterface.addresses(withIPv6: listener.host == "::").map(listener.url(at:))
    }
  }

  /// Where a browser is to go: under the name of the certificate, where a setting says it.
  var namedURL: String? {
    guard let httpsURL else { return url }
    guard let name = publicNames.first, var parts = URLComponents(string: httpsURL) else {
      return httpsURL
    }
    parts.host = name
    return parts.string ?? httpsURL
  }

  /// Opens the store for a look or a change, without serving or delivering.
  static func open(_ options: Options) async throws -> HubRuntime {
    try await make(options, listening: false)
  }

  /// Opens the store, takes up what was not delivered yet, and listens.
  static func start(_ options: Options) async throws -> HubRuntime {
    // Before the store, which would only say that it cannot open a file.
    try DescriptorLimit.require()
    return try await make(options, listening: true)
  }

  private static func make(_ options: Options, listening: Bool) async throws -> HubRuntime {
    let claim = listening ? try options.directoryClaim() : nil
    // The last server's port may be another program's by now, which must not be shown keys.
    if claim != nil { options.data.withdrawAddress() }
    // A server of an older version may be at work, which could not read what this one would make.
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
      services.serviceHosts = options.serviceHosts
      services.connections = options.pushConnections
      services.apns.maxConnections = options.http2Connections
      var limits = DispatchLimits()
      limits.keeping = options.keepOutcomes
      limits.deadHandleShare = options.deadHandleShare
      var hubLimits = options.compatibility.limits
      hubLimits.refusesRetired = options.refusesRetired
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
      _ = try await service.rootPolicy()
      var listener: HTTPListener?
      var secure: SecureListener?
      var metrics: HTTPListener?
      var jobs: JobRunner?
      if listening {
        // Whatever is wrong with the certificate shows before a socket opens.
        let keeper = try options.https.map {
          try CertificateKeeper($0.source, at: Date(), log: options.log.lines(.info, "certificate"))
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
        if let keeper, let https = options.https {
          let listener = try listen(
            limited, connections: connections, port: https.port, tls: keeper.first,
            service: service, observer: observer, signIn: signIn, journal: journal)
          secure = SecureListener(
            listener, keeper: keeper, log: options.log.lines(.info, "certificate"))
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
      signIn, service: service, journal: journal, hasLocalUser: options.portalDesk != nil,
      next: handler)
    if let desk = options.browserPage?(service) { handler = BrowserPage(desk: desk, next: handler) }
    if options.portal { handler = Portal(desk: options.portalDesk?(service), next: handler) }
    do {
      return try HTTPListener(
        configuration, handler: ProxiedHandler(options.trustedProxies, next: handler))
    } catch {
      throw CommandFailure(error.description, exitCode: .unreachable)
    }
  }

  /// Stops accepting, lets what is in flight finish within the limit, and writes everything out.
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
  /// Keeps the connections of clients within the open files that the process may have.
  fileprivate mutating func limitConnections(to descriptors: Int) {
    let most = DescriptorLimit.connections(within: descriptors)
    guard most < connectionLimit else { return }
    log.lines(.warning, "server")(
      "this process may have \(descriptors) files open, room for \(most) connections and not for "
        + "the \(connectionLimit) of connectionLimit: \(DescriptorLimit.advice)")
    connectionLimit = most
  }

  /// Two servers on one file would send everything twice. Nodes on one PostgreSQL share the work,
  /// but not a directory: address and working files in it are of one.
  fileprivate func directoryClaim() throws -> DirectoryClaim {
    try claim ?? data.claim(for: .serving)
  }

  /// Notes where the hub listens. A full disk must not keep it from serving what it has.
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

  /// Who may sign in at the portal; `nil` where it is not served.
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

  /// Where jobs may read and write.
  fileprivate var jobs: JobConfiguration {
    var jobs = JobConfiguration(workspace: URL(fileURLWithPath: data.path + "/jobs"))
    jobs.allowedHosts = jobHosts
    jobs.extraAnchorsPEM = anchorsPEM
    jobs.directory = jobDirectory.map { URL(fileURLWithPath: $0) }
    jobs.namespace = namespace ?? jobs.namespace
    return jobs
  }
}

/// The addresses that this machine has for others.
enum NetworkInterface {
  /// In numbers, without loopback and link-local ones, in the system's order.
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

  /// Without a slash at its end. What listens everywhere is reached here by the loopback address:
  /// not by a name, which may not resolve.
  var url: String { url(at: isEverywhere ? "127.0.0.1" : host) }

  func url(at host: String) -> String {
    "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }
}
