import Foundation
import HubSimulation

// Libraries that ask for the time or for chance within a life find these functions in place of
// libc's and of Swift's: the program is linked so that they see its symbols. The life hears of it
// (`Promise.ownClock`); then, and outside of lives, the real function answers.
//
// Not caught: `time`, the bytes of a UUID, and in a debug build Swift's own generator.
#if os(Linux)
  @_cdecl("clock_gettime")
  public func tripClockGettime(_ clock: Int32, _ time: UnsafeMutableRawPointer) -> Int32 {
    Tripwire.spring("clock_gettime")
    typealias Function = @convention(c) (Int32, UnsafeMutableRawPointer) -> Int32
    return unsafeBitCast(Tripwire.clock, to: Function.self)(clock, time)
  }

  @_cdecl("gettimeofday")
  public func tripGetTimeOfDay(
    _ time: UnsafeMutableRawPointer?, _ zone: UnsafeMutableRawPointer?
  ) -> Int32 {
    Tripwire.spring("gettimeofday")
    typealias Function =
      @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Int32
    return unsafeBitCast(Tripwire.timeOfDay, to: Function.self)(time, zone)
  }

  @_cdecl("swift_stdlib_random")
  public func tripRandom(_ bytes: UnsafeMutableRawPointer, _ count: Int) {
    Tripwire.spring("swift_stdlib_random")
    typealias Function = @convention(c) (UnsafeMutableRawPointer, Int) -> Void
    unsafeBitCast(Tripwire.random, to: Function.self)(bytes, count)
  }

  enum Tripwire {
    /// Ends the program when a call of a library does not come here.
    static func prove() {
      var calls: [(String, () -> Void)] = [("Date()", { _ = Date() })]
      // Without optimisation the generator is called within Swift's own library, where nobody sees it.
      #if !DEBUG
        calls.append(("UInt64.random", { _ = UInt64.random(in: 0...UInt64.max) }))
      #endif
      for (name, call) in calls {
        let world = World(seed: 0, order: .uniform)
        TaskHook.within(world, call)
        if world.trips.isEmpty { Program.fail("the tripwires do not see \(name)") }
      }
    }

    // Functions: nobody writes to them.
    nonisolated(unsafe) fileprivate static let clock = original("clock_gettime")
    nonisolated(unsafe) fileprivate static let timeOfDay = original("gettimeofday")
    nonisolated(unsafe) fileprivate static let random = original("swift_stdlib_random")

    /// The function of a name behind this program's own.
    private static func original(_ name: String) -> UnsafeMutableRawPointer {
      // RTLD_NEXT, which is a cast that Swift does not import.
      guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: -1), name) else {
        // Impossible: the program could not have been linked.
        fatalError("there is no \(name)")
      }
      return symbol
    }

    /// Tells the life, once: the first stack is enough.
    fileprivate static func spring(_ name: String) {
      guard let world = TaskHook.world, world.trips.isEmpty else { return }
      let frames = Thread.callStackSymbols
      // OpenSSL adds the time to its entropy.
      guard !frames.contains(where: { $0.contains("libcrypto") }) else { return }
      world.tell("asks for \(name)", at: world.current)
      world.trip(name, from: names(frames))
    }

    /// The functions of a stack, the innermost first: those without a name by their place in a file.
    /// Foundation's date functions leave no trace of who called them; the time line shows the moment.
    private static func names(_ frames: [String]) -> String {
      let names = frames.dropFirst(2).map { line in
        let words = line.split { " ()".contains($0) }
        guard words.count > 1, let name = words[1].split(separator: "+").first else { return line }
        guard words[1].hasPrefix("+") else { return demangle(String(name)) }
        return "\(words[0].split(separator: "/").last ?? "")\(words[1])"
      }
      return names.prefix(8).joined(separator: " < ")
    }

    private static func demangle(_ name: String) -> String {
      typealias Function =
        @convention(c) (
          UnsafePointer<CChar>?, Int, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<Int>?,
          UInt32
        ) -> UnsafeMutablePointer<CChar>?
      guard name.hasPrefix("$s"), let symbol = dlsym(dlopen(nil, RTLD_LAZY), "swift_demangle"),
        let text = unsafeBitCast(symbol, to: Function.self)(name, name.utf8.count, nil, nil, 0)
      else { return name }
      defer { free(text) }
      return String(cString: text)
    }
  }
#else
  enum Tripwire {
    static func prove() {}
  }
#endif
