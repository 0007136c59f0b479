/// The hub's use cases, one call for each operation of the protocol; the layers above only
/// translate to and from HTTP or the command line. A subject with several calls is a ``HubSubject``
/// with a type and a file of its own: `service.installations.put(…)` is in `HubInstallations.swift`.
///
/// Every call throws ``HubFailure`` with the status and text of docs/protocol/rest.md, section 1.6;
/// a failure of the store becomes 503.
package final class HubService: Sendable {
  package let store: any HubStore
  package let directory: HubDirectory
  package let dispatcher: Dispatcher
  package let clock: HubClock
  package let random: HubRandom
  package let limits: HubLimits
  package let callsUnderWay: CallsUnderWay
  let testSends: CallMeter
  /// Limits probes of credentials: each costs the push service a connection, and may count against
  /// the account there.
  let probes: CallMeter
  /// The subscribers to the progress of notifications.
  package let progressFeeds: ProgressFeeds
  /// Validates credentials; `nil` accepts every credential.
  package let gateways: (any GatewayDirectory)?
  /// Runs imports and exports; `nil` leaves them for another process.
  package let jobs: (any JobScheduler)?

  package init(
    store: any HubStore, directory: HubDirectory, dispatcher: Dispatcher, clock: HubClock,
    random: HubRandom, limits: HubLimits = .extended, gateways: (any GatewayDirectory)? = nil,
    jobs: (any JobScheduler)? = nil
  ) {
    self.store = store
    self.directory = directory
    self.dispatcher = dispatcher
    self.clock = clock
    self.random = random
    self.limits = limits
    callsUnderWay = CallsUnderWay()
    progressFeeds = ProgressFeeds(clock: clock)
    testSends = CallMeter(
      perMinute: limits.testSendsPerMinute, of: dispatcher.nodes,
      "test sends a minute; leave ?test out to send for real")
    probes = CallMeter(
      perMinute: 20, of: dispatcher.nodes,
      "probes of credentials a minute; the push service's own answer changes no faster")
    self.gateways = gateways
    self.jobs = jobs
  }

  /// The same service, with a scheduler for its jobs.
  package func running(jobs: any JobScheduler) -> HubService { HubService(self, jobs: jobs) }

  private init(_ service: HubService, jobs: any JobScheduler) {
    store = service.store
    directory = service.directory
    dispatcher = service.dispatcher
    clock = service.clock
    random = service.random
    limits = service.limits
    callsUnderWay = service.callsUnderWay
    testSends = service.testSends
    probes = service.probes
    progressFeeds = service.progressFeeds
    gateways = service.gateways
    self.jobs = jobs
  }

  /// Maximum number of the store's pages that are read for one page of a list.
  static let stretches = 20

  /// A body up to this size, in bytes, is read where the request is served.
  private static let smallDocument = 4 * 1024

  /// Reads a request's body: a large one in the turn of its sender, on a thread of its own.
  ///
  /// - Throws: The error of `read`; also 429 when too much of its sender is waiting.
  // Kept out of the calling function, whose frame takes memory of every task.
  @inline(never)
  func reading<Value: Sendable>(
    _ body: [UInt8], _ read: @escaping @Sendable () throws -> Value
  ) async throws(HubFailure) -> Value {
    try await answering {
      guard body.count > Self.smallDocument else { return try read() }
      return try await store.inTurn(bytes: body.count, read)
    }
  }
}

/// The calls of one subject.
protocol HubSubject: Sendable {
  var service: HubService { get }
}

extension HubSubject {
  var store: any HubStore { service.store }
  var directory: HubDirectory { service.directory }
  var dispatcher: Dispatcher { service.dispatcher }
  var clock: HubClock { service.clock }
  var random: HubRandom { service.random }
  var limits: HubLimits { service.limits }
  var gateways: (any GatewayDirectory)? { service.gateways }

  func reading<Value: Sendable>(
    _ body: [UInt8], _ read: @escaping @Sendable () throws -> Value
  ) async throws(HubFailure) -> Value {
    try await service.reading(body, read)
  }

  func changing<Value>(_ work: () async throws -> Value) async throws(HubFailure) -> Value {
    try await service.changing(work)
  }
}
