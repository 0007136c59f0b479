#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Takes the jobs of the whole process from the runtime: every task, every actor. Jobs of the main
/// actor and `Task.sleep` do not come this way, so nothing simulated may use them.
package enum TaskHook {
  private typealias Original = @convention(thin) (UnownedJob) -> Void
  private typealias Hook = @convention(thin) (UnownedJob, Original) -> Void

  /// The world that jobs belong to.
  // Owner: the thread that has installed the hook, the only one that runs a job.
  nonisolated(unsafe) package private(set) static var world: World?
  // Written once, before the first job.
  nonisolated(unsafe) private static var thread = pthread_self()

  /// No executor in particular, as the runtime names it.
  static let generic = unsafeBitCast((0, 0), to: UnownedSerialExecutor.self)

  /// From here on every job runs on the calling thread, in a world.
  package static func install() {
    thread = pthread_self()
    let name = "swift_task_enqueueGlobal_hook"
    guard let symbol = dlsym(dlopen(nil, RTLD_LAZY), name) else {
      fatalError("this runtime has no \(name): a simulator needs Swift's own concurrency runtime")
    }
    let hook: Hook = { job, _ in
      guard pthread_equal(pthread_self(), TaskHook.thread) != 0, let world = TaskHook.world else {
        fatalError("a job from another thread, or outside of a life: a real timer, or Dispatch")
      }
      world.enqueue(job)
    }
    symbol.assumingMemoryBound(to: Hook?.self).pointee = hook
  }

  /// Does something in a world.
  package static func within<Value>(_ world: World, _ body: () throws -> Value) rethrows -> Value {
    TaskHook.world = world
    defer { TaskHook.world = nil }
    return try body()
  }
}
