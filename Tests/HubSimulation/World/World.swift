package import Foundation

/// The number of a process, or ``clients``, to which the world's own events belong.
package typealias ProcessID = Int

/// A world of one thread: virtual time, and tasks in an order that a seed decides.
///
/// Every job that the runtime would hand to its pool comes here (``TaskHook``). While one is ready
/// the next is drawn; only when none is does the next event fire, and time moves to it. A job
/// belongs to the place whose code made it ready, and that is the place of the job or event that ran
/// then: so no code of one place may resume another's task but by an event (``after(_:at:_:)``).
///
/// State that every step uses is exempt from Swift's checks for overlapping accesses, which took as
/// long as the steps themselves.
package final class World: @unchecked Sendable {  // owner: the one thread of the simulator
  package static let clients: ProcessID = -1
  /// Lines about the database stand in the history under this number; no code runs there.
  package static let database: ProcessID = -2

  /// The rule by which the next ready job is chosen.
  package enum Order: Int, CaseIterable, Sendable {
    case uniform
    /// The job that became ready last goes first, except in one choice of five.
    case newestFirst
    /// One job is left waiting as long as there are others, for up to a thousand steps.
    case starving
    /// For histories that are to be read.
    case firstInFirstOut
  }

  /// An error that ends a life early.
  package struct Stop: Error, CustomStringConvertible {
    package let description: String
  }

  /// A call of code of a life for a time or for chance that is not the world's.
  package struct Trip: Sendable {
    package let call: String
    package let stack: String
    package let seconds: Double
  }

  private struct Ready {
    let number: Int
    let place: ProcessID
    let job: UnownedJob
  }

  /// True time since the life began, in nanoseconds.
  @exclusivity(unchecked) package private(set) var now: Int64 = 0
  @exclusivity(unchecked) package private(set) var steps = 0
  @exclusivity(unchecked) package private(set) var current = World.clients
  /// Over everything that happened, in its order.
  @exclusivity(unchecked) package private(set) var digest: UInt64 = 0xCBF2_9CE4_8422_2325
  /// The life is over: waits end with an error, and tasks that are left run to their end.
  @exclusivity(unchecked) package private(set) var isClosing = false
  package private(set) var trips: [Trip] = []
  /// Lines of the time line; kept only if ``isTelling``.
  package private(set) var history: [(at: Int64, place: ProcessID, line: String)] = []
  package let isTelling: Bool
  /// The digest after each step, and how long the history was then; kept only where ``isTelling``.
  package private(set) var trail: [(digest: UInt64, told: Int)] = []

  private let order: Order
  @exclusivity(unchecked) private var draw: RandomStream
  @exclusivity(unchecked) private var ready: [Ready] = []
  @exclusivity(unchecked) private var readyCount = 0
  @exclusivity(unchecked) private var starved: (number: Int, until: Int)?
  @exclusivity(unchecked) private var events = EventQueue()
  @exclusivity(unchecked) private var eventCount = 0
  @exclusivity(unchecked) private var parked: [ProcessID: [Ready]] = [:]
  private var sleepers:
    [Int: (place: ProcessID, continuation: CheckedContinuation<Void, any Error>)] =
      [:]
  @exclusivity(unchecked) private var stepsThisSecond = 0

  /// More in one second of virtual time is a life that does not end.
  private static let mostSteps = 200_000
  /// More in a whole life, of five nodes and a day at most, is one that does not end.
  private static let mostStepsOfALife = 20_000_000

  package init(seed: UInt64, order: Order, isTelling: Bool = false) {
    draw = RandomStream(seed, UInt64(keyOf: "order"))
    self.order = order
    self.isTelling = isTelling
  }

  /// True time as a date; all clocks begin near it.
  package static let start = Date(timeIntervalSince1970: 1_893_456_000)
  package var date: Date { Self.start.addingTimeInterval(seconds) }
  package var seconds: Double { Double(now) / 1e9 }

  // MARK: Events

  /// Runs something on behalf of a place once so many seconds have passed.
  package func after(_ seconds: Double, at place: ProcessID, _ run: @escaping () -> Void) {
    eventCount += 1
    events.insert(
      .init(
        at: now + Int64(max(0, seconds) * 1e9), number: eventCount, place: place, run: run))
  }

  /// Returns after so many seconds of true time; at once at the end of a life.
  package func wait(_ seconds: Double) async {
    let place = current
    await withCheckedContinuation { continuation in
      after(seconds, at: place) { continuation.resume() }
    }
  }

  /// Sleeps on a clock of a place.
  /// - Parameter left: Seconds of true time until the sleeper is due, asked again when they are over;
  ///   0 when it is: the clock may have stood still.
  /// - Throws: `CancellationError`, at the end of a life as well.
  package func sleep(at place: ProcessID, _ left: @escaping () -> Double) async throws {
    eventCount += 1
    let number = eventCount
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        guard !Task.isCancelled, !isClosing else {
          return continuation.resume(throwing: CancellationError())
        }
        sleepers[number] = (place, continuation)
        awaken(number, at: place, left)
      }
    } onCancel: {
      sleepers.removeValue(forKey: number)?.continuation.resume(throwing: CancellationError())
    }
  }

  private func awaken(_ number: Int, at place: ProcessID, _ left: @escaping () -> Double) {
    after(left(), at: place) { [unowned self] in
      guard sleepers.keys.contains(number) else { return }
      // A nanosecond is what rounding loses.
      guard left() <= 2e-9 else { return awaken(number, at: place, left) }
      sleepers.removeValue(forKey: number)?.continuation.resume()
    }
  }

  /// Sleepers of a place: its timers.
  package func sleeperCount(of place: ProcessID) -> Int {
    sleepers.values.reduce(0) { $0 + ($1.place == place ? 1 : 0) }
  }

  // MARK: Places that stand still

  /// Keeps the jobs of a place from running, as a stopped process; its timers fire into its queue.
  package func pause(_ place: ProcessID) { if parked[place] == nil { parked[place] = [] } }

  package func resume(_ place: ProcessID) {
    guard let jobs = parked.removeValue(forKey: place) else { return }
    ready += jobs
  }

  package func isPaused(_ place: ProcessID) -> Bool { parked[place] != nil }

  // MARK: Running

  /// Runs until so many seconds have passed in all.
  /// - Throws: ``Stop`` for a life in which one moment does not end.
  package func run(until end: Double) throws {
    let end = Int64(end * 1e9)
    while true {
      if let due = events.due, due <= now || ready.isEmpty && due <= end || isClosing,
        let event = events.removeFirst()
      {
        fire(event)
      } else if !ready.isEmpty {
        runNextJob()
      } else {
        if !isClosing, end > now { pass(to: end) }
        return
      }
      stepsThisSecond += 1
      if isTelling { trail.append((digest, history.count)) }
      guard steps <= Self.mostStepsOfALife else {
        throw Stop(description: "\(steps) steps were made, and it has not ended")
      }
      guard stepsThisSecond <= Self.mostSteps else {
        throw Stop(description: "\(Self.mostSteps) steps were made in one second of virtual time")
      }
    }
  }

  private func fire(_ event: EventQueue.Event) {
    if event.at > now, !isClosing { pass(to: event.at) }
    steps += 1
    mix(UInt64(truncatingIfNeeded: event.number))
    current = event.place
    event.run()
    current = World.clients
  }

  private func pass(to moment: Int64) {
    if moment / 1_000_000_000 > now / 1_000_000_000 { stepsThisSecond = 0 }
    now = moment
  }

  private func runNextJob() {
    let index = nextIndex()
    let chosen = ready[index]
    if order == .uniform {
      ready.swapAt(index, ready.count - 1)
      ready.removeLast()
    } else {
      ready.remove(at: index)
    }
    if !isClosing, parked[chosen.place] != nil {
      parked[chosen.place]?.append(chosen)
      return
    }
    steps += 1
    mix(UInt64(index))
    // Up to 50 microseconds of a processor: what happens meanwhile comes in between.
    if !isClosing, order != .firstInFirstOut { pass(to: now + Int64(draw.below(50_000))) }
    current = chosen.place
    chosen.job.runSynchronously(on: TaskHook.generic)
    current = World.clients
  }

  private func nextIndex() -> Int {
    let count = ready.count
    guard count > 1 else { return 0 }
    switch order {
    case .uniform: return draw.below(count)
    case .newestFirst: return draw.oneIn(5) ? draw.below(count) : count - 1
    case .firstInFirstOut: return 0
    case .starving:
      if starved.map({ $0.until < steps }) ?? true {
        starved = (ready[draw.below(count)].number, steps + draw.below(1_000))
      }
      let index = draw.below(count)
      return ready[index].number == starved?.number ? (index + 1) % count : index
    }
  }

  /// A job is ready. ``TaskHook`` calls this.
  func enqueue(_ job: UnownedJob) {
    readyCount += 1
    ready.append(Ready(number: readyCount, place: current, job: job))
  }

  /// Ends the life: sleepers throw, paused places go on, and what is under way runs out without time.
  package func close() throws {
    isClosing = true
    for number in sleepers.keys.sorted() {
      guard let sleeper = sleepers.removeValue(forKey: number) else { continue }
      current = sleeper.place
      sleeper.continuation.resume(throwing: CancellationError())
    }
    current = World.clients
    for place in parked.keys.sorted() { resume(place) }
    try run(until: seconds)
  }

  // MARK: What happened

  private func mix(_ value: UInt64) { digest = (digest ^ value) &* 0x100_0000_01B3 }

  /// Adds a happening to the digest, and to the history where that is told.
  package func note(_ line: @autoclosure () -> String, at place: ProcessID = World.clients) {
    guard !isClosing else { return }
    let line = line()
    for byte in line.utf8 { mix(UInt64(byte)) }
    mix(UInt64(bitPattern: now))
    if isTelling { history.append((now, place, line)) }
  }

  /// Adds to the history what readers want to see and the digest need not have.
  package func tell(_ line: @autoclosure () -> String, at place: ProcessID) {
    if isTelling, !isClosing { history.append((now, place, line())) }
  }

  /// Code of a life has asked for a time or for chance that is not the world's.
  package func trip(_ call: String, from stack: String) {
    if !isClosing { trips.append(Trip(call: call, stack: stack, seconds: seconds)) }
  }
}
