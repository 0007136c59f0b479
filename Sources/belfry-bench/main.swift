print("belfry-bench")
