/// Lets a bounded number of emulators run at a time. Each holds some 70 descriptors, and all tests
/// of a process begin at once.
///
/// A test that has one may start a second inside: there are far more places than such tests.
actor EmulatorGate {
  static let shared = EmulatorGate(places: 48)

  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(places: Int) { free = places }

  func enter() async {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  /// Hands the place to who has waited longest.
  func leave() {
    if waiting.isEmpty {
      free += 1
    } else {
      waiting.removeFirst().resume()
    }
  }
}
